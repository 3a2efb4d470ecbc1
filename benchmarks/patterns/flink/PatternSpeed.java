import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.time.Duration;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.functions.FilterFunction;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.DataStreamUtils;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.api.functions.source.legacy.SourceFunction;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.util.Collector;

/**
 * Flink's CEP on the queries of pattern-speed: events from memory, one thread, event time.
 *
 * <p>Events come from memory in the thread of the operator: no network, no serializer. One job reads
 * the same events several times over, each time later by more than a window. A pass is measured from
 * its first event to its last match: CPU time of the whole process, so its compilers and its
 * collector count, and its start does not. Prints a JSON object for each pass.
 *
 * <p>No lambdas and no type arguments: the compiler in Flink's own jars has neither, and it is there
 * wherever Flink is, also without a JDK.
 */
public final class PatternSpeed {
    /** An event. */
    public static final class Event {
        public long time;

        /** Its place in the stream. */
        public int number;

        public int kind;
        public int sign;

        /** Whether a window begins with it. */
        public boolean opens;
    }

    private static final Map options = new HashMap();

    // The rows, column by column.
    private static long[] times;
    private static int[] kinds;
    private static byte[] signs;
    private static byte[] opens;

    // Of the pass that runs. Static, for Flink works on copies of what it is given.
    private static final BitSet windows = new BitSet();
    private static int matches;

    /**
     * Runs a query, given as name=value.
     *
     * <p>data: a file, little-endian: how many, then all times (8 bytes), kinds (4), signs and
     * whether they open (1). asked: none, any (of different kinds) or steps (kinds in sequence),
     * behind an event that opens. count, steps: of that. signs: each is an alternative. within:
     * last time - first time is less. read: rows between two watermarks. warm_s: for so long passes
     * are not told. passes: how many are told then. limit_s: a pass that takes longer ends early,
     * with as many events as it had.
     */
    public static void main(String[] given) throws Exception {
        for (int i = 0; i < given.length; i++) {
            int equals = given[i].indexOf('=');
            options.put(given[i].substring(0, equals), given[i].substring(equals + 1));
        }
        load(text("data"));
        Configuration settings = new Configuration();
        settings.setString("pipeline.object-reuse", "true");
        settings.setString("state.backend.type", "hashmap");
        StreamExecutionEnvironment flow =
                StreamExecutionEnvironment.createLocalEnvironment(1, settings);
        DataStream events =
                flow.addSource(new Passes(), "events", TypeInformation.of(Event.class));
        List patterns = patterns();
        if (patterns.isEmpty()) {
            events.filter(new Nothing()).sinkTo(new DiscardingSink());
        }
        for (int i = 0; i < patterns.size(); i++) {
            // Not keyBy, which puts a network channel and a second thread between the two.
            DataStream keyed =
                    DataStreamUtils.reinterpretAsKeyedStream(events, new OneKey(), Types.BYTE);
            CEP.pattern(keyed, (Pattern) patterns.get(i))
                    .process(new Told(), Types.INT)
                    .sinkTo(new DiscardingSink());
        }
        flow.execute();
    }

    /** Returns the patterns that are asked for: Flink's CEP has no alternatives of sequences. */
    private static List patterns() {
        List found = new ArrayList();
        if (text("asked").equals("none")) {
            return found;
        }
        Duration within = Duration.ofMillis(Long.parseLong(text("within")));
        int[] all = numbers("signs");
        for (int i = 0; i < all.length; i++) {
            int sign = all[i];
            if (text("asked").equals("any")) {
                Pattern more = begin(new Opens()).followedBy("more").where(new Different(sign));
                found.add(more.times(Integer.parseInt(text("count"))).within(within));
                continue;
            }
            int[] steps = numbers("steps");
            if (!opensAsStep(steps[0], sign)) {
                found.add(sequence(begin(new Opens()), steps, 0, sign).within(within));
                continue;
            }
            // What opens a window may be the first step, too; an event has one place in a match.
            Pattern as = begin(new OpensAs(steps[0], sign, true));
            found.add(sequence(as, steps, 1, sign).within(within));
            Pattern before = begin(new OpensAs(steps[0], sign, false));
            found.add(sequence(before, steps, 0, sign).within(within));
        }
        return found;
    }

    private static Pattern begin(IterativeCondition condition) {
        return Pattern.begin("open", AfterMatchSkipStrategy.noSkip()).where(condition);
    }

    private static Pattern sequence(Pattern begun, int[] steps, int from, int sign) {
        Pattern found = begun;
        for (int place = from; place < steps.length; place++) {
            found = found.followedBy("step" + place).where(new Step(steps[place], sign));
        }
        return found;
    }

    private static boolean opensAsStep(int kind, int sign) {
        for (int row = 0; row < times.length; row++) {
            if (opens[row] != 0 && kinds[row] == kind && signs[row] == sign) {
                return true;
            }
        }
        return false;
    }

    /** Whether a window begins with an event. */
    public static final class Opens extends SimpleCondition {
        public boolean filter(Object event) {
            return ((Event) event).opens;
        }
    }

    /** Whether a window begins with an event, and it is that step, or is not. */
    public static final class OpensAs extends SimpleCondition {
        private final Step step;
        private final boolean is;

        public OpensAs(int kind, int sign, boolean is) {
            this.step = new Step(kind, sign);
            this.is = is;
        }

        public boolean filter(Object event) {
            return ((Event) event).opens && step.filter(event) == is;
        }
    }

    /** Whether an event has a kind and a sign. */
    public static final class Step extends SimpleCondition {
        private final int kind;
        private final int sign;

        public Step(int kind, int sign) {
            this.kind = kind;
            this.sign = sign;
        }

        public boolean filter(Object event) {
            return ((Event) event).kind == kind && ((Event) event).sign == sign;
        }
    }

    /** Whether an event has a sign, and a kind that none before it in the match has. */
    public static final class Different extends IterativeCondition {
        private final int sign;

        public Different(int sign) {
            this.sign = sign;
        }

        public boolean filter(Object given, IterativeCondition.Context match) throws Exception {
            Event event = (Event) given;
            if (event.sign != sign) {
                return false;
            }
            Iterator before = match.getEventsForPattern("more").iterator();
            while (before.hasNext()) {
                if (((Event) before.next()).kind == event.kind) {
                    return false;
                }
            }
            return true;
        }
    }

    /** No event. */
    public static final class Nothing implements FilterFunction {
        public boolean filter(Object event) {
            return ((Event) event).kind < 0;
        }
    }

    /** All events have one key. */
    public static final class OneKey implements KeySelector {
        public Object getKey(Object event) {
            return Byte.valueOf((byte) 0);
        }
    }

    /** Counts matches, and the windows that have one: several alternatives may match in one. */
    public static final class Told extends PatternProcessFunction {
        public void processMatch(
                Map match, PatternProcessFunction.Context context, Collector out) {
            int first = ((Event) ((List) match.get("open")).get(0)).number;
            matches++;
            windows.set(first);
            out.collect(Integer.valueOf(first));
        }
    }

    /** The events, several times over. */
    public static final class Passes implements SourceFunction {
        public void run(SourceFunction.SourceContext out) throws Exception {
            int read = Integer.parseInt(text("read"));
            long within = Long.parseLong(text("within"));
            double warm = 1e9 * Double.parseDouble(text("warm_s"));
            double limit = 1e9 * Double.parseDouble(text("limit_s"));
            int told = Integer.parseInt(text("passes"));
            long longer = times[times.length - 1] - times[0] + 2 * within + 1;
            long shift = 0;
            long start = System.nanoTime();
            while (told > 0) {
                double left = warm - (System.nanoTime() - start);
                double most = left > 0 ? left : limit;
                matches = 0;
                windows.clear();
                long wall = System.nanoTime();
                long cpu = cpu();
                int row = 0;
                while (row < times.length && System.nanoTime() - wall < most) {
                    for (int end = Math.min(row + read, times.length); row < end; row++) {
                        Event event = new Event();
                        event.time = times[row] + shift;
                        event.number = row;
                        event.kind = kinds[row];
                        event.sign = signs[row];
                        event.opens = opens[row] != 0;
                        out.collectWithTimestamp(event, event.time);
                    }
                    out.emitWatermark(new Watermark(times[row - 1] + shift - 1));
                }
                out.emitWatermark(new Watermark(times[row - 1] + shift + within));
                double spent = (cpu() - cpu) / 1e9;
                double took = (System.nanoTime() - wall) / 1e9;
                shift += longer;
                if (left <= 0) {
                    told--;
                    System.out.println(
                            "{\"events\": " + row + ", \"cpu_s\": " + spent + ", \"wall_s\": " + took
                                    + ", \"matches\": " + matches
                                    + ", \"windows\": " + windows.cardinality() + "}");
                }
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

    private static int[] numbers(String name) {
        String[] parts = text(name).split(",");
        int[] found = new int[parts.length];
        for (int i = 0; i < parts.length; i++) {
            found[i] = Integer.parseInt(parts[i]);
        }
        return found;
    }

    private static void load(String path) throws IOException {
        ByteBuffer from = ByteBuffer.wrap(Files.readAllBytes(Paths.get(path, new String[0])));
        from.order(ByteOrder.LITTLE_ENDIAN);
        int rows = (int) from.getLong();
        times = new long[rows];
        kinds = new int[rows];
        signs = new byte[rows];
        opens = new byte[rows];
        for (int row = 0; row < rows; row++) {
            times[row] = from.getLong();
        }
        for (int row = 0; row < rows; row++) {
            kinds[row] = from.getInt();
        }
        from.get(signs);
        from.get(opens);
    }
}
