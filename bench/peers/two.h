/* Cases of two ranks from their names to their figures, over words.h and blocks.h and one more call that the
 * program defines:
 *
 *   window_memory(bytes)    job memory for blocks, page aligned; the other rank's is where put_now writes
 *
 * How often each is repeated is what makes a repetition a tenth of a second or so where the library is good. */

enum { MESSAGES = 100000, POSTED_MESSAGES = 20000, GAP_WINDOWS = 200, RATE_WINDOWS = 2000 };

enum kind { MESSAGE, ANYSOURCE, POSTED, POST_GAP, RATE, CHANNEL, BANDWIDTH_JOB, BANDWIDTH_OWN, BANDWIDTH_STREAM };

static const struct figure FIGURES[] = {
    [MESSAGE] = {"message", "", "latency_ns"},
    [ANYSOURCE] = {"anysource", "", "latency_ns"},
    [POSTED] = {"posted", "", "latency_ns"},
    [POST_GAP] = {"posted", "post_gap", "time_ns"},
    [RATE] = {"rate", "", "rate_per_s"},
    [CHANNEL] = {"channel", "", "rate_per_s"},
    [BANDWIDTH_JOB] = {"bandwidth_job", "", "bandwidth_bytes_per_s"},
    [BANDWIDTH_OWN] = {"bandwidth_own", "", "bandwidth_bytes_per_s"},
    [BANDWIDTH_STREAM] = {"bandwidth_stream", "", "bandwidth_bytes_per_s"},
};

struct two {
    enum kind kind;
    struct figure figure;
    struct messages *messages;
    struct blocks blocks;
    uint64_t number;
};

static enum kind kind_of(const char *name) {
    if (!strcmp(name, "post_gap")) return POST_GAP;
    for (size_t kind = 0; kind < sizeof FIGURES / sizeof *FIGURES; kind++)
        if (!strcmp(FIGURES[kind].name, name)) return (enum kind)kind;
    fail(name, "is no case of this program");
}

/* Whether the case can be played by the way that is asked for. */
static bool has_way(enum kind kind, const char *by) {
    if (!by) return true;
    if (!strcmp(by, "recv")) return kind == MESSAGE || kind == ANYSOURCE || kind == POSTED;
    if (!strcmp(by, "send")) return kind == RATE || kind == CHANNEL;
    return !strcmp(by, "put") && kind == BANDWIDTH_JOB;
}

static bool leaves_others(const struct two *t) { return t->kind == POSTED || t->kind == POST_GAP; }

static struct two begin_two(const struct options *o) {
    struct two t = {.kind = kind_of(o->name)};
    if (!has_way(t.kind, o->by)) fail(o->name, "is not played by what --by says");
    t.figure = FIGURES[t.kind];
    if (t.kind == ANYSOURCE) receive_from_any();
    if (t.kind == CHANNEL) window_words = ELEMENT_WORDS;
    if (t.kind < BANDWIDTH_JOB) {
        t.messages = new_messages(o->bytes, asks_for(o, "recv"));
    } else {
        size_t bytes = 2 * area_max(o);
        t.blocks = new_blocks(o, t.kind == BANDWIDTH_JOB ? window_memory(bytes) : own_memory(bytes));
    }
    if (leaves_others(&t)) post_others(t.messages);
    meet();
    return t;
}

/* One repetition; its figure has a meaning on rank 0. */
static double measure_two(struct two *t, const struct options *o) {
    if (t->kind >= BANDWIDTH_JOB) {
        shape_blocks(&t->blocks, o);
        t->figure.variant = state_name(o);
    }
    switch (t->kind) {
    case MESSAGE:
    case ANYSOURCE: return measure_message(t->messages, iterations(o, MESSAGES));
    case POSTED: return measure_message(t->messages, iterations(o, POSTED_MESSAGES));
    case POST_GAP: return measure_post_gap(&t->number, iterations(o, GAP_WINDOWS));
    case RATE:
    case CHANNEL: return measure_rate(&t->number, iterations(o, RATE_WINDOWS), asks_for(o, "send"));
    case BANDWIDTH_STREAM: return measure_stream(&t->blocks, blocks_of(o, WINDOW));
    default: return measure_blocks(&t->blocks, blocks_of(o, 1));
    }
}

static void end_two(struct two *t) {
    if (leaves_others(t)) finish_others(t->messages);
    meet();
}
