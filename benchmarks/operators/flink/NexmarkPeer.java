import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.FilterFunction;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.DataStreamUtils;
import org.apache.flink.streaming.api.datastream.KeyedStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.legacy.SinkFunction;
import org.apache.flink.streaming.api.functions.source.legacy.RichParallelSourceFunction;
import org.apache.flink.streaming.api.functions.source.legacy.SourceFunction;
import org.apache.flink.streaming.api.functions.windowing.AllWindowFunction;
import org.apache.flink.streaming.api.functions.windowing.WindowFunction;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.api.windowing.assigners.SlidingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.streaming.api.windowing.windows.Window;
import org.apache.flink.util.Collector;

/**
 * Nexmark q1, q2, q5 and q8 in Flink: events from memory, event time, state on the heap.
 *
 * <p>One job reads the same events several times over, each time later by whole windows. Passes
 * after the first ones, which warm up, are measured together: CPU time of the whole process, up to
 * the end of the job. Prints a JSON object.
 *
 * <p>No lambdas and no type arguments: the compiler in Flink's own jars has neither.
 */
public final class NexmarkPeer {
    /** An event: a bid (kind 0: auction, bidder, price), a person (1: id), an auction (2: seller). */
    public static final class Event {
        public long time;
        public long kind;
        public long a;
        public long b;
        public long c;
    }

    private static final Map options = new HashMap();
    private static final TypeInformation ROW = Types.PRIMITIVE_ARRAY(Types.LONG);
    private static final long WINDOW_MS = 10000;
    private static final long PANE_MS = 2000;

    // Static, for Flink works on copies of what it is given.
    private static long[][] columns;
    private static long longer;
    private static CyclicBarrier barrier;
    private static final AtomicLong began = new AtomicLong();
    private static final AtomicLong beganWall = new AtomicLong();
    private static final AtomicLong rows = new AtomicLong();
    private static final AtomicLong sum = new AtomicLong();

    /**
     * Runs a query, given as name=value.
     *
     * <p>data: a file, little-endian: how many, then the columns of events, 8 bytes each. query: q1,
     * q2, q5 or q8. slots: how many. disorder_ms: of the watermarks. read: rows between two
     * watermarks. warm: passes that are not measured, at least one. passes: those that are.
     */
    public static void main(String[] given) throws Exception {
        for (int i = 0; i < given.length; i++) {
            int equals = given[i].indexOf('=');
            options.put(given[i].substring(0, equals), given[i].substring(equals + 1));
        }
        load(text("data"));
        int slots = Integer.parseInt(text("slots"));
        barrier = new CyclicBarrier(slots);
        Configuration settings = new Configuration();
        settings.setString("pipeline.object-reuse", "true");
        settings.setString("state.backend.type", "hashmap");
        StreamExecutionEnvironment flow =
                StreamExecutionEnvironment.createLocalEnvironment(slots, settings);
        DataStream events =
                flow.addSource(new Passes(), "events", TypeInformation.of(Event.class));
        answer(events, text("query"), slots).addSink(new Counted());
        flow.execute();
        double spent = (cpu() - began.get()) / 1e9;
        double took = (System.nanoTime() - beganWall.get()) / 1e9;
        System.out.println(
                "{\"cpu_s\": " + spent + ", \"wall_s\": " + took + ", \"rows\": " + rows.get()
                        + ", \"sum\": " + sum.get() + "}");
    }

    private static DataStream answer(DataStream events, String query, int slots) {
        if (query.equals("q1")) {
            return events.map(new Euros()).returns(ROW);
        }
        if (query.equals("q2")) {
            return events.filter(new Wanted()).map(new Price()).returns(ROW);
        }
        KeyedStream keyed =
                slots == 1
                        ? DataStreamUtils.reinterpretAsKeyedStream(events, new OfEvent(), Types.LONG)
                        : events.keyBy(new OfEvent(), Types.LONG);
        if (query.equals("q8")) {
            return keyed.window(TumblingEventTimeWindows.of(Duration.ofMillis(WINDOW_MS)))
                    .aggregate(new Kinds(), new NewSellers(), ROW, ROW);
        }
        // Counts of panes first, so that an event is in one window and not in five.
        DataStream panes =
                keyed.window(TumblingEventTimeWindows.of(Duration.ofMillis(PANE_MS)))
                        .aggregate(new Count(), new Named(), ROW, ROW);
        DataStream counts =
                DataStreamUtils.reinterpretAsKeyedStream(panes, new OfRow(), Types.LONG)
                        .window(
                                SlidingEventTimeWindows.of(
                                        Duration.ofMillis(WINDOW_MS), Duration.ofMillis(PANE_MS)))
                        .aggregate(new Sum(), new Named(), ROW, ROW);
        return counts.windowAll(TumblingEventTimeWindows.of(Duration.ofMillis(PANE_MS)))
                .apply(new Most(), ROW);
    }

    /** q1: prices in euros. */
    public static final class Euros implements MapFunction {
        public Object map(Object given) {
            Event event = (Event) given;
            long euros = Double.doubleToLongBits(event.c * 0.908);
            return new long[] {event.time, event.a, event.b, euros};
        }
    }

    /** q2: some auctions. */
    public static final class Wanted implements FilterFunction {
        public boolean filter(Object event) {
            return ((Event) event).a % 123 == 0;
        }
    }

    /** Auction and price of a bid. */
    public static final class Price implements MapFunction {
        public Object map(Object given) {
            Event event = (Event) given;
            return new long[] {event.time, event.a, event.c};
        }
    }

    /** The auction of a bid, the id of a person, the seller of an auction. */
    public static final class OfEvent implements KeySelector {
        public Object getKey(Object event) {
            return Long.valueOf(((Event) event).a);
        }
    }

    /** The key of a row, its second number. */
    public static final class OfRow implements KeySelector {
        public Object getKey(Object row) {
            return Long.valueOf(((long[]) row)[1]);
        }
    }

    /** Number of events. */
    public static final class Count implements AggregateFunction {
        public Object createAccumulator() {
            return new long[1];
        }

        public Object add(Object event, Object state) {
            ((long[]) state)[0]++;
            return state;
        }

        public Object getResult(Object state) {
            return state;
        }

        public Object merge(Object one, Object other) {
            ((long[]) one)[0] += ((long[]) other)[0];
            return one;
        }
    }

    /** Sum of the counts of panes. */
    public static final class Sum implements AggregateFunction {
        public Object createAccumulator() {
            return new long[1];
        }

        public Object add(Object row, Object state) {
            ((long[]) state)[0] += ((long[]) row)[2];
            return state;
        }

        public Object getResult(Object state) {
            return state;
        }

        public Object merge(Object one, Object other) {
            ((long[]) one)[0] += ((long[]) other)[0];
            return one;
        }
    }

    /** Which kinds of events came. */
    public static final class Kinds implements AggregateFunction {
        public Object createAccumulator() {
            return new long[1];
        }

        public Object add(Object event, Object state) {
            ((long[]) state)[0] |= ((Event) event).kind;
            return state;
        }

        public Object getResult(Object state) {
            return state;
        }

        public Object merge(Object one, Object other) {
            ((long[]) one)[0] |= ((long[]) other)[0];
            return one;
        }
    }

    /** Start of the window, key and count. */
    public static final class Named implements WindowFunction {
        public void apply(Object key, Window window, Iterable states, Collector out) {
            long[] state = (long[]) states.iterator().next();
            long start = ((TimeWindow) window).getStart();
            out.collect(new long[] {start, ((Long) key).longValue(), state[0]});
        }
    }

    /** Persons who sold something in the window in which they came. */
    public static final class NewSellers implements WindowFunction {
        public void apply(Object key, Window window, Iterable states, Collector out) {
            if (((long[]) states.iterator().next())[0] == 3) {
                long start = ((TimeWindow) window).getStart();
                out.collect(new long[] {start, ((Long) key).longValue()});
            }
        }
    }

    /** Rows with the greatest count. */
    public static final class Most implements AllWindowFunction {
        public void apply(Window window, Iterable counts, Collector out) {
            List best = new ArrayList();
            long most = 0;
            Iterator each = counts.iterator();
            while (each.hasNext()) {
                long[] row = (long[]) each.next();
                if (row[2] > most) {
                    best.clear();
                    most = row[2];
                }
                if (row[2] == most) {
                    best.add(row);
                }
            }
            for (int i = 0; i < best.size(); i++) {
                out.collect(best.get(i));
            }
        }
    }

    /** Counts rows of the first pass, and adds their hashes up. */
    public static final class Counted implements SinkFunction {
        public void invoke(Object given, SinkFunction.Context context) {
            long[] row = (long[]) given;
            if (row[0] >= columns[0][0] + longer / 2) {
                return;
            }
            long hash = 0;
            for (int i = 0; i < row.length; i++) {
                hash = (hash ^ row[i]) * 0x9E3779B97F4A7C15L;
                hash ^= hash >>> 32;
            }
            rows.incrementAndGet();
            sum.addAndGet(hash);
        }
    }

    /** The events, several times over; each slot has every second one, where there are two. */
    public static final class Passes extends RichParallelSourceFunction {
        public void run(SourceFunction.SourceContext out) throws Exception {
            int slot = getRuntimeContext().getTaskInfo().getIndexOfThisSubtask();
            int slots = Integer.parseInt(text("slots"));
            int read = Integer.parseInt(text("read"));
            int warm = Integer.parseInt(text("warm"));
            int all = warm + Integer.parseInt(text("passes"));
            long disorder = Long.parseLong(text("disorder_ms"));
            long newest = Long.MIN_VALUE;
            long shift = 0;
            int size = columns[0].length;
            for (int pass = 0; pass < all; pass++) {
                if (pass == warm && barrier.await() == 0) {
                    began.set(cpu());
                    beganWall.set(System.nanoTime());
                }
                int since = 0;
                for (int row = slot; row < size; row += slots) {
                    Event event = new Event();
                    event.time = columns[0][row] + shift;
                    event.kind = columns[1][row];
                    event.a = columns[2][row];
                    event.b = columns[3][row];
                    event.c = columns[4][row];
                    newest = Math.max(newest, event.time);
                    out.collectWithTimestamp(event, event.time);
                    if (++since == read) {
                        since = 0;
                        out.emitWatermark(new Watermark(newest - disorder - 1));
                    }
                }
                shift += longer;
            }
        }

        public void cancel() {}
    }

    private static long cpu() {
        return ((com.sun.management.OperatingSystemMXBean)
                        ManagementFactory.getOperatingSystemMXBean())
                .getProcessCpuTime();
    }

    private static String text(String name) {
        return (String) options.get(name);
    }

    private static void load(String path) throws IOException {
        ByteBuffer from = ByteBuffer.wrap(Files.readAllBytes(Paths.get(path, new String[0])));
        from.order(ByteOrder.LITTLE_ENDIAN);
        int size = (int) from.getLong();
        columns = new long[5][size];
        for (int column = 0; column < 5; column++) {
            from.asLongBuffer().get(columns[column]);
            from.position(from.position() + 8 * size);
        }
        long last = 0;
        for (int row = 0; row < size; row++) {
            last = Math.max(last, columns[0][row]);
        }
        // Twice as long as the events and more, by whole windows: results tell the passes apart.
        longer = (2 * (last - columns[0][0]) / WINDOW_MS + 20) * WINDOW_MS;
    }
}
