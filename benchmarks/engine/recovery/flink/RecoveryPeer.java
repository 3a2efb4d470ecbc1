import java.io.FileOutputStream;
import java.io.OutputStream;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Iterator;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.serialization.SimpleStringEncoder;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.connector.file.sink.FileSink;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.filesystem.bucketassigners.BasePathBucketAssigner;
import org.apache.flink.streaming.api.functions.sink.filesystem.rollingpolicies.OnCheckpointRollingPolicy;
import org.apache.flink.streaming.api.functions.sink.legacy.RichSinkFunction;
import org.apache.flink.streaming.api.functions.sink.legacy.SinkFunction;
import org.apache.flink.streaming.api.functions.source.legacy.RichSourceFunction;
import org.apache.flink.streaming.api.functions.source.legacy.SourceFunction;

/**
 * The flow of recovery-peers in Flink: rows as the clock reaches them, the total of each key, lines.
 *
 * <p>Given are a folder, the rows a second, the rows of all, the keys, and the sink: "append" to one
 * file, or "published", Flink's own sink of files, which shows a file once a checkpoint has it. The
 * process that reads the source writes its number to the file "process" of the folder.
 *
 * <p>No lambdas and no type arguments: the compiler in Flink's own jars has neither.
 */
public final class RecoveryPeer {
    /** Runs the flow to its end. */
    public static void main(String[] given) throws Exception {
        StreamExecutionEnvironment flow = StreamExecutionEnvironment.getExecutionEnvironment();
        Feed feed =
                new Feed(
                        given[0],
                        Long.parseLong(given[1]),
                        Long.parseLong(given[2]),
                        Long.parseLong(given[3]));
        DataStream rows = flow.addSource(feed, "rows", Types.LONG);
        DataStream totals =
                rows.keyBy(new Key(feed.keys), Types.LONG).map(new Total(feed.keys)).returns(Types.STRING);
        if (given[4].equals("append")) {
            totals.addSink(new Append(given[0]));
        } else {
            org.apache.flink.core.fs.Path folder = new org.apache.flink.core.fs.Path(given[0], "out");
            FileSink.RowFormatBuilder sink = FileSink.forRowFormat(folder, new SimpleStringEncoder());
            sink.withBucketAssigner(new BasePathBucketAssigner());
            sink.withRollingPolicy(OnCheckpointRollingPolicy.build());
            totals.sinkTo(sink.build());
        }
        flow.execute();
    }

    /** Rows at regular intervals; its position, and its start, are in each checkpoint. */
    public static final class Feed extends RichSourceFunction implements CheckpointedFunction {
        final String folder;
        final long rate;
        final long rows;
        final long keys;
        private transient ListState saved;
        private volatile boolean cancelled;
        private long next;
        private long start;

        public Feed(String folder, long rate, long rows, long keys) {
            this.folder = folder;
            this.rate = rate;
            this.rows = rows;
            this.keys = keys;
        }

        public void run(SourceFunction.SourceContext out) throws Exception {
            Path process = Paths.get(folder, new String[] {"process"});
            String name = ManagementFactory.getRuntimeMXBean().getName(); // number@host
            byte[] number = name.substring(0, name.indexOf(64)).getBytes();
            Files.write(process, number, new java.nio.file.OpenOption[0]);
            while (!cancelled && next < rows) {
                synchronized (out.getCheckpointLock()) {
                    long due = (System.currentTimeMillis() - start) * rate / 1000 + 1;
                    for (; next < Math.min(due, rows); next++) {
                        out.collect(Long.valueOf(next));
                    }
                }
                Thread.sleep(1);
            }
        }

        public void cancel() {
            cancelled = true;
        }

        public void snapshotState(FunctionSnapshotContext context) throws Exception {
            saved.clear();
            saved.add(Long.valueOf(start));
            saved.add(Long.valueOf(next));
        }

        public void initializeState(FunctionInitializationContext context) throws Exception {
            saved =
                    context.getOperatorStateStore()
                            .getListState(new ListStateDescriptor("position", Types.LONG));
            Iterator known = ((Iterable) saved.get()).iterator();
            start = System.currentTimeMillis();
            if (known.hasNext()) {
                start = ((Long) known.next()).longValue();
                next = ((Long) known.next()).longValue();
            }
        }
    }

    /** The key of a row. */
    public static final class Key implements KeySelector {
        private final long keys;

        public Key(long keys) {
            this.keys = keys;
        }

        public Object getKey(Object row) {
            return Long.valueOf(((Long) row).longValue() % keys);
        }
    }

    /** The total of a key after a row, as a line of 32 bytes. */
    public static final class Total extends RichMapFunction {
        private final long keys;
        private transient ValueState total;

        public Total(long keys) {
            this.keys = keys;
        }

        public void open(OpenContext context) throws Exception {
            total = getRuntimeContext().getState(new ValueStateDescriptor("total", Types.LONG));
        }

        public Object map(Object row) throws Exception {
            long number = ((Long) row).longValue();
            Object before = total.value();
            long after = (before == null ? 0L : ((Long) before).longValue()) + number * 31 % 1000;
            total.update(Long.valueOf(after));
            return String.format("%010d %020d", new Object[] {Long.valueOf(number), Long.valueOf(after)});
        }
    }

    /** A file to which each line is appended at once. */
    public static final class Append extends RichSinkFunction {
        private final String folder;
        private transient OutputStream out;

        public Append(String folder) {
            this.folder = folder;
        }

        public void open(OpenContext context) throws Exception {
            out = new FileOutputStream(folder + "/out/lines", true);
        }

        public void invoke(Object line, SinkFunction.Context context) throws Exception {
            out.write((line + "\n").getBytes(StandardCharsets.US_ASCII));
        }

        public void close() throws Exception {
            if (out != null) {
                out.close();
            }
        }
    }
}
