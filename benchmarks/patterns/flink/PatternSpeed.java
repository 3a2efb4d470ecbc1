import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
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
 * <p>Events come from memory in the thread of the operator: no network, no serializer. One job reads the same events several times over, each time later by more than a window. A
 * pass is measured from its first event to its last match: CPU time of the whole process, so its
 * compilers and its collector count, and its start does not. Prints a JSON object a line.
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

    /** Rows between two watermarks. */
    private static int read;

    private static Map<String, String> options = new HashMap<>();
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
     * last time - first time is less. read: rows between two watermarks. warm_s: for so long passes are not told. passes: how many are
     * told then. limit_s: a pass that takes longer ends early, with as many events as it had.
     */
    public static void main(String[] given) throws Exception {
        for (String one : given) {
            options.put(one.split("=", 2)[0], one.split("=", 2)[1]);
        }
        read = Integer.parseInt(options.get("read"));
        load(Path.of(options.get("data")));
        Configuration settings = new Configuration();
        settings.setString("pipeline.object-reuse", "true");
        settings.setString("state.backend.type", "hashmap");
        StreamExecutionEnvironment flow =
                StreamExecutionEnvironment.createLocalEnvironment(1, settings);
        DataStream<Event> events =
                flow.addSource(new Passes(), "events", TypeInformation.of(Event.class));
        List<Pattern<Event, ?>> patterns = patterns();
        if (patterns.isEmpty()) {
            events.filter(event -> event.kind < 0).sinkTo(new DiscardingSink<>());
        }
        for (Pattern<Event, ?> pattern : patterns) {
            // Not keyBy, which puts a network channel and a second thread between the two.
            DataStream<Event> keyed =
                    DataStreamUtils.reinterpretAsKeyedStream(events, event -> (byte) 0, Types.BYTE);
            CEP.pattern(keyed, pattern).process(new Told(), Types.INT).sinkTo(new DiscardingSink<>());
        }
        flow.execute();
    }

    /** Returns the patterns that are asked for: Flink's CEP has no alternatives of sequences. */
    private static List<Pattern<Event, ?>> patterns() {
        List<Pattern<Event, ?>> found = new ArrayList<>();
        String asked = options.get("asked");
        if (asked.equals("none")) {
            return found;
        }
        Duration within = Duration.ofMillis(Long.parseLong(options.get("within")));
        for (String text : options.get("signs").split(",")) {
            int sign = Integer.parseInt(text);
            if (asked.equals("any")) {
                found.add(
                        begin(event -> event.opens)
                                .followedBy("more")
                                .where(new Different(sign))
                                .times(Integer.parseInt(options.get("count")))
                                .within(within));
                continue;
            }
            int[] steps =
                    Arrays.stream(options.get("steps").split(",")).mapToInt(Integer::parseInt).toArray();
            // What opens a window may be the first step, too; an event has one place in a match.
            found.add(
                    sequence(
                                    begin(e -> e.opens && !(e.kind == steps[0] && e.sign == sign)),
                                    steps,
                                    0,
                                    sign)
                            .within(within));
            if (existsOpeningFirst(steps[0], sign)) {
                found.add(
                        sequence(
                                        begin(e -> e.opens && e.kind == steps[0] && e.sign == sign),
                                        steps,
                                        1,
                                        sign)
                                .within(within));
            }
        }
        return found;
    }

    private static Pattern<Event, Event> begin(
            org.apache.flink.api.common.functions.FilterFunction<Event> opens) {
        return Pattern.<Event>begin("open", AfterMatchSkipStrategy.noSkip())
                .where(SimpleCondition.of(opens));
    }

    private static Pattern<Event, Event> sequence(
            Pattern<Event, Event> begun, int[] steps, int from, int sign) {
        Pattern<Event, Event> found = begun;
        for (int place = from; place < steps.length; place++) {
            int kind = steps[place];
            found =
                    found.followedBy("step" + place)
                            .where(SimpleCondition.of(e -> e.kind == kind && e.sign == sign));
        }
        return found;
    }

    private static boolean existsOpeningFirst(int kind, int sign) {
        for (int row = 0; row < times.length; row++) {
            if (opens[row] != 0 && kinds[row] == kind && signs[row] == sign) {
                return true;
            }
        }
        return false;
    }

    /** Whether an event has a sign, and a kind that none before it in the match has. */
    private static final class Different extends IterativeCondition<Event> {
        private final int sign;

        Different(int sign) {
            this.sign = sign;
        }

        @Override
        public boolean filter(Event event, Context<Event> match) throws Exception {
            if (event.sign != sign) {
                return false;
            }
            for (Event before : match.getEventsForPattern("more")) {
                if (before.kind == event.kind) {
                    return false;
                }
            }
            return true;
        }
    }

    /** Counts matches, and the windows that have one: several alternatives may match in one. */
    private static final class Told extends PatternProcessFunction<Event, Integer> {
        @Override
        public void processMatch(
                Map<String, List<Event>> match, Context context, Collector<Integer> out) {
            Event first = match.get("open").get(0);
            matches++;
            windows.set(first.number);
            out.collect(first.number);
        }
    }

    /** The events, several times over. */
    private static final class Passes implements SourceFunction<Event> {
        @Override
        public void run(SourceContext<Event> out) throws Exception {
            long within = Long.parseLong(options.get("within"));
            double warm = 1e9 * Double.parseDouble(options.get("warm_s"));
            double limit = 1e9 * Double.parseDouble(options.get("limit_s"));
            int told = Integer.parseInt(options.get("passes"));
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
                    System.out.printf(
                            "{\"events\": %d, \"cpu_s\": %.6f, \"wall_s\": %.6f, \"matches\": %d,"
                                    + " \"windows\": %d}%n",
                            row, spent, took, matches, windows.cardinality());
                }
            }
        }

        @Override
        public void cancel() {}
    }

    private static long cpu() {
        return ((com.sun.management.OperatingSystemMXBean)
                        ManagementFactory.getOperatingSystemMXBean())
                .getProcessCpuTime();
    }

    private static void load(Path path) throws IOException {
        ByteBuffer from = ByteBuffer.wrap(Files.readAllBytes(path)).order(ByteOrder.LITTLE_ENDIAN);
        int rows = (int) from.getLong();
        times = new long[rows];
        kinds = new int[rows];
        signs = new byte[rows];
        opens = new byte[rows];
        from.asLongBuffer().get(times);
        from.position(from.position() + 8 * rows);
        from.asIntBuffer().get(kinds);
        from.position(from.position() + 4 * rows);
        from.get(signs);
        from.get(opens);
    }
}
