/* What a compiled kernel would do for `join_flow` in one slot: the same work by the same rules.
 *
 *   rows' file ──▶ both sources, looked at together ──▶ filters ──▶ join per area ──▶ columns kept
 *                  sleeps until a row is due, and until a gap has passed since the last look
 *
 * A program for one flow and no library: `compiled_run.py` compiles it, writes its rows, reads what
 * it found and checks that. Times are nanoseconds of the wall clock, event times milliseconds.
 *
 *   compiled ROWS OUT GAP_NS WARM_UP_NS SECONDS_NS DELAY_OVER FLOW_OVER WITHIN_MS WORKS
 *
 * ROWS: int64 rows of buses, of readings; int64 arrival and ts of all buses, then of all readings;
 * int32 area, value (delay, flow) and id (vehicle, sensor) of all buses, then of all readings. Each
 * side is in the order of ts, and of arrival, of which the first is 0.
 * OUT: the results' columns one behind the other, int64, as `result_columns` below has them.
 * WORKS: 1; or 0, to sleep and wake as often and pass over the rows.
 * Standard output: words, a number behind each: of the window behind the warm-up.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BUS, LOOP, SIDES };
enum { TS, TS_RIGHT, ARRIVAL, ARRIVAL_RIGHT, AREA, VEHICLE, SENSOR, EGRESS, RESULT_COLUMNS };

#define AHEAD_NS 50000000 /* from the start of the program to when arrival 0 is due */
#define SLACK_NS 1000UL   /* of the timers, as `sharpen_timers` has it */

/* One source: its columns, as they lie in the file, and how far it has come. */
struct source {
    int64_t rows, next;
    const int64_t *arrival, *ts;
    const int32_t *area, *value, *id;
    double over;
};

/* What the join holds of one side in one area: rows [first, end), in the order of their ts. */
struct held {
    int64_t first, end, room;
    int64_t *row;
};

struct results {
    int64_t count, room;
    int64_t *column[RESULT_COLUMNS];
};

struct usage { /* up until a moment */
    int64_t at_ns, cpu_ns, sleeps, looks;
};

static void fail(const char *what) { perror(what), exit(1); }

static void *room_for(void *before, int64_t count) {
    void *made = realloc(before, (size_t)count * sizeof(int64_t));
    if (made == NULL) fail("memory");
    return made;
}

static int64_t clock_ns(clockid_t which) {
    struct timespec now;
    clock_gettime(which, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static struct usage used(int64_t looks) {
    struct rusage counted;
    getrusage(RUSAGE_SELF, &counted);
    struct usage now = {clock_ns(CLOCK_REALTIME), clock_ns(CLOCK_PROCESS_CPUTIME_ID),
                        counted.ru_nvcsw, looks};
    return now;
}

/* As a slot sleeps: on a descriptor by which it could be woken, until microseconds have passed. */
static void sleep_ns(int64_t left_ns, int waker) {
    fd_set read;
    FD_ZERO(&read);
    FD_SET(waker, &read);
    int64_t left_us = (left_ns + 999) / 1000;
    struct timeval wait = {left_us / 1000000, left_us % 1000000};
    select(waker + 1, &read, NULL, NULL, &wait);
}

static void map_rows(const char *path, struct source *sources) {
    int file = open(path, O_RDONLY);
    struct stat size;
    if (file < 0 || fstat(file, &size) != 0) fail(path);
    int how = MAP_PRIVATE | MAP_POPULATE;
    const int64_t *wide = mmap(NULL, (size_t)size.st_size, PROT_READ, how, file, 0);
    if (wide == MAP_FAILED) fail(path);
    close(file);
    for (int side = 0; side < SIDES; side++) sources[side].rows = wide[side];
    wide += SIDES;
    for (int side = 0; side < SIDES; side++) {
        sources[side].arrival = wide;
        sources[side].ts = wide + sources[side].rows;
        wide += 2 * sources[side].rows;
    }
    const int32_t *narrow = (const int32_t *)wide;
    for (int side = 0; side < SIDES; side++) {
        sources[side].area = narrow;
        sources[side].value = narrow + sources[side].rows;
        sources[side].id = narrow + 2 * sources[side].rows;
        narrow += 3 * sources[side].rows;
    }
}

static void hold(struct held *held, int64_t row) {
    if (held->end == held->room) {
        int64_t rows = held->end - held->first;
        if (held->first > held->room / 2) { /* what has gone makes room */
            memmove(held->row, held->row + held->first, (size_t)rows * sizeof(int64_t));
            held->first = 0;
            held->end = rows;
        } else {
            held->room = held->room ? 2 * held->room : 16;
            held->row = room_for(held->row, held->room);
        }
    }
    held->row[held->end++] = row;
}

static void give(struct results *out, const struct source *sources, int64_t bus, int64_t loop) {
    if (out->count == out->room) {
        out->room *= 2;
        for (int n = 0; n < RESULT_COLUMNS; n++)
            out->column[n] = room_for(out->column[n], out->room);
    }
    const struct source *left = &sources[BUS], *right = &sources[LOOP];
    int64_t place = out->count++;
    out->column[TS][place] = left->ts[bus];
    out->column[TS_RIGHT][place] = right->ts[loop];
    out->column[ARRIVAL][place] = left->arrival[bus];
    out->column[ARRIVAL_RIGHT][place] = right->arrival[loop];
    out->column[AREA][place] = left->area[bus];
    out->column[VEHICLE][place] = left->id[bus];
    out->column[SENSOR][place] = right->id[loop];
    out->column[EGRESS][place] = clock_ns(CLOCK_REALTIME);
}

/* Filter a row, join it with what is held of the other side, and hold it.
 * Its side promises nothing before its ts: so what lies further back finds nothing any more. */
static void work(int side, int64_t row, struct source *sources, struct held *held[SIDES],
                 int64_t within_ms, struct results *out) {
    const struct source *own = &sources[side], *other = &sources[!side];
    if (!((double)own->value[row] > own->over)) return;
    int64_t ts = own->ts[row];
    struct held *partners = &held[!side][own->area[row]];
    while (partners->first < partners->end &&
           other->ts[partners->row[partners->first]] < ts - within_ms)
        partners->first++;
    for (int64_t n = partners->first; n < partners->end; n++) {
        int64_t partner = partners->row[n];
        if (other->ts[partner] > ts + within_ms) break;
        give(out, sources, side == BUS ? row : partner, side == BUS ? partner : row);
    }
    hold(&held[side][own->area[row]], row);
}

/* Return the side whose next row is due first; SIDES: both have ended. */
static int first_due(const struct source *sources) {
    int first = SIDES;
    for (int side = 0; side < SIDES; side++) {
        const struct source *one = &sources[side];
        if (one->next == one->rows) continue;
        const struct source *best = &sources[first % SIDES];
        if (first == SIDES || one->arrival[one->next] < best->arrival[best->next]) first = side;
    }
    return first;
}

static void write_results(const char *path, const struct results *out) {
    FILE *file = fopen(path, "wb");
    if (file == NULL) fail(path);
    size_t rows = (size_t)out->count;
    for (int n = 0; n < RESULT_COLUMNS; n++)
        if (fwrite(out->column[n], sizeof(int64_t), rows, file) != rows) fail(path);
    if (fclose(file) != 0) fail(path);
}

static void say(const char *word, int64_t value) { printf("%s %lld\n", word, (long long)value); }

int main(int count, char **words) {
    struct source sources[SIDES] = {0};
    if (count != 10) return 2;
    map_rows(words[1], sources);
    int64_t gap_ns = atoll(words[3]), begin_ns = atoll(words[4]);
    int64_t end_ns = begin_ns + atoll(words[5]), within_ms = atoll(words[8]);
    sources[BUS].over = strtod(words[6], NULL);
    sources[LOOP].over = strtod(words[7], NULL);
    int works = atoi(words[9]);

    int64_t areas = 0;
    for (int side = 0; side < SIDES; side++)
        for (int64_t n = 0; n < sources[side].rows; n++)
            if (sources[side].area[n] >= areas) areas = sources[side].area[n] + 1;
    struct held *held[SIDES];
    for (int side = 0; side < SIDES; side++) {
        held[side] = calloc((size_t)areas + 1, sizeof(struct held));
        if (held[side] == NULL) fail("memory");
    }
    struct results out = {0, 1024, {0}};
    for (int n = 0; n < RESULT_COLUMNS; n++) out.column[n] = room_for(NULL, out.room);
    int waker[2];
    if (pipe(waker) != 0) fail("pipe");
    prctl(PR_SET_TIMERSLACK, SLACK_NS, 0, 0, 0);

    int64_t start_ns = clock_ns(CLOCK_REALTIME) + AHEAD_NS, next_look_ns = 0, looks = 0;
    struct usage begin = {0}, end = {0};
    for (int side; (side = first_due(sources)) != SIDES;) {
        int64_t now_ns = clock_ns(CLOCK_REALTIME) - start_ns;
        if (!begin.at_ns && now_ns >= begin_ns) begin = used(looks);
        if (!end.at_ns && now_ns >= end_ns) end = used(looks);
        int64_t due_ns = sources[side].arrival[sources[side].next];
        int64_t until_ns = due_ns > next_look_ns ? due_ns : next_look_ns;
        if (end.at_ns) { /* what counts is over: the rest is for the results to be all */
            now_ns = INT64_MAX;
        } else if (until_ns > now_ns) {
            sleep_ns(until_ns - now_ns, waker[0]);
            continue;
        }
        looks++;
        next_look_ns = end.at_ns ? now_ns : now_ns + gap_ns;
        while ((side = first_due(sources)) != SIDES) {
            struct source *one = &sources[side];
            if (one->arrival[one->next] > now_ns) break;
            int64_t row = one->next++;
            if (works) work(side, row, sources, held, within_ms, &out);
        }
    }
    if (!begin.at_ns) begin = used(looks); /* the rows ended before */
    if (!end.at_ns) end = used(looks);
    write_results(words[2], &out);
    say("start_ns", start_ns);
    say("wall_ns", end.at_ns - begin.at_ns);
    say("cpu_ns", end.cpu_ns - begin.cpu_ns);
    say("sleeps", end.sleeps - begin.sleeps);
    say("looks", end.looks - begin.looks);
    return 0;
}
