/* message, anysource, posted, post_gap, rate, channel: cases of small messages between two ranks, written once over what the program that
 * includes this file defines for its library:
 *
 *   pending                                    what a started operation is known by
 *   receive_start(to, bytes, tag, &pending)    returns at once
 *   send_start(from, bytes, tag, &pending)     returns at once
 *   send_now(from, bytes, tag)                 returns when `from` may be written again
 *   receive_now(to, bytes, tag)                returns when the message is there
 *   await(&pending), await_all(pending, count)
 *   receive_from_any()                         later receives name no source
 *   is_lead()                                  whether this rank begins, and holds the clock
 *
 * All go to and come from the other of two ranks. They are inlined, so a library pays for nothing but itself. */

enum {
    TAG_WORD = 1,
    TAG_ANSWER = 2,
    TAG_MEET = 3,
    TAG_NOTE = 4,
    TAG_OTHER = 1000,      /* and up: of receives that stay outstanding */
    OTHERS = 600,
    WINDOW = 64,
};

/* The follower has everything posted; untimed. */
static void meet(void) {
    uint64_t word = 0;
    pending p;
    if (is_lead()) {
        receive_start(&word, sizeof word, TAG_MEET, &p);
        await(&p);
    } else {
        send_now(&word, sizeof word, TAG_MEET);
    }
}

/* One message each way in flight. */
struct messages {
    uint64_t *sent, *received;
    size_t words;
    uint64_t number;
    bool by_calls;             /* receives by the call that returns with the message */
    pending next;
    pending others[OTHERS];
    uint64_t others_received[OTHERS];
};

static void expect(const struct messages *m, uint64_t value) {
    check_word(m->received[0], value, "message");
    check_word(m->received[m->words - 1], value, "message");
}

static void put_value(struct messages *m, uint64_t value) {
    m->sent[0] = value;
    m->sent[m->words - 1] = value;
}

static void message_lead(struct messages *m, long rounds) {
    size_t bytes = m->words * sizeof(uint64_t);
    for (long i = 0; i < rounds; i++) {
        uint64_t value = ++m->number;
        put_value(m, value);
        receive_start(m->received, bytes, TAG_WORD, &m->next);
        send_now(m->sent, bytes, TAG_WORD);
        await(&m->next);
        expect(m, ~value);
    }
}

/* The next receive is posted before the answer that lets the other side send for it. */
static void message_follow(struct messages *m, long rounds) {
    size_t bytes = m->words * sizeof(uint64_t);
    receive_start(m->received, bytes, TAG_WORD, &m->next);
    meet();
    for (long i = 0; i < rounds; i++) {
        uint64_t value = ++m->number;
        await(&m->next);
        expect(m, value);
        put_value(m, ~value);
        if (i + 1 < rounds) receive_start(m->received, bytes, TAG_WORD, &m->next);
        send_now(m->sent, bytes, TAG_WORD);
    }
}

/* The same by calls that return with the message, which some libraries have a shorter way for. The follower waits in
 * its call before the lead sends; the lead asks for its answer while that is on its way. */
static void message_calls(struct messages *m, long rounds) {
    size_t bytes = m->words * sizeof(uint64_t);
    meet();
    for (long i = 0; i < rounds; i++) {
        uint64_t value = ++m->number;
        if (is_lead()) {
            put_value(m, value);
            send_now(m->sent, bytes, TAG_WORD);
            receive_now(m->received, bytes, TAG_WORD);
            expect(m, ~value);
        } else {
            receive_now(m->received, bytes, TAG_WORD);
            expect(m, value);
            put_value(m, ~value);
            send_now(m->sent, bytes, TAG_WORD);
        }
    }
}

static void message_rounds(struct messages *m, long rounds) {
    if (m->by_calls) {
        message_calls(m, rounds);
    } else if (is_lead()) {
        meet();
        message_lead(m, rounds);
    } else {
        message_follow(m, rounds);
    }
}

/* One way in ns. */
static double measure_message(struct messages *m, long rounds) {
    message_rounds(m, rounds / 10 + 1);
    double start = now_ns();
    message_rounds(m, rounds);
    return (now_ns() - start) / (double)rounds / 2;
}

static struct messages *new_messages(size_t bytes, bool by_calls) {
    struct messages *m = own_memory(sizeof *m);
    m->by_calls = by_calls;
    m->words = bytes / sizeof(uint64_t);
    m->sent = own_memory(bytes);
    m->received = own_memory(bytes);
    return m;
}

/* Receives that nobody sends for while others are measured. Posted first, so a list must be searched past them. */
static void post_others(struct messages *m) {
    for (int i = 0; i < OTHERS; i++)
        receive_start(&m->others_received[i], sizeof(uint64_t), TAG_OTHER + i, &m->others[i]);
}

/* A library may not be left with receives outstanding: both sides send for them. */
static void finish_others(struct messages *m) {
    static uint64_t values[OTHERS];
    static pending sends[OTHERS];
    for (int i = 0; i < OTHERS; i++) {
        values[i] = (uint64_t)i;
        send_start(&values[i], sizeof(uint64_t), TAG_OTHER + i, &sends[i]);
    }
    await_all(sends, OTHERS);
    await_all(m->others, OTHERS);
    for (int i = 0; i < OTHERS; i++) check_word(m->others_received[i], (uint64_t)i, "posted");
}

/* Words of the messages of a window: one, or eight for a channel. */
enum { ELEMENT_WORDS = 8 };
static size_t window_words = 1;

/* A window of messages. */
struct window {
    uint64_t words[WINDOW * ELEMENT_WORDS];
    pending pending[WINDOW];
};

static uint64_t *message_of(struct window *w, int i) { return w->words + (size_t)i * window_words; }

static void put_message(struct window *w, int i, uint64_t value) {
    for (size_t word = 0; word < window_words; word++) message_of(w, i)[word] = value;
}

static void window_post(struct window *w) {
    for (int i = 0; i < WINDOW; i++)
        receive_start(message_of(w, i), window_words * sizeof(uint64_t), TAG_WORD, &w->pending[i]);
}

static void window_finish(struct window *w, uint64_t first) {
    await_all(w->pending, WINDOW);
    for (int i = 0; i < WINDOW; i++)
        for (size_t word = 0; word < window_words; word++)
            check_word(message_of(w, i)[word], first + (uint64_t)i, "window");
}

static void window_send(struct window *w, uint64_t first) {
    for (int i = 0; i < WINDOW; i++) {
        put_message(w, i, first + (uint64_t)i);
        send_start(message_of(w, i), window_words * sizeof(uint64_t), TAG_WORD, &w->pending[i]);
    }
    await_all(w->pending, WINDOW);
}

/* The same by the call that returns when the value may be overwritten; some libraries are quicker by it. */
static void window_send_now(struct window *w, uint64_t first) {
    for (int i = 0; i < WINDOW; i++) {
        put_message(w, i, first + (uint64_t)i);
        send_now(message_of(w, i), window_words * sizeof(uint64_t), TAG_WORD);
    }
}

/* Time in ns from one posting to the next, with the others outstanding. */
static double measure_post_gap(uint64_t *number, long windows) {
    static struct window window;
    double took = 0, clock = clock_cost_ns();
    for (long i = 0; i < windows; i++) {
        uint64_t first = *number;
        *number += WINDOW;
        if (is_lead()) {
            double start = now_ns();
            window_post(&window);
            took += now_ns() - start - clock;
            send_now(&first, sizeof first, TAG_ANSWER);
            window_finish(&window, first);
        } else {
            uint64_t got = 0;
            pending go;
            receive_start(&got, sizeof got, TAG_ANSWER, &go);
            await(&go);
            check_word(got, first, "post_gap");
            window_send(&window, first);
        }
    }
    return took / (double)(windows * WINDOW);
}

static void rate_lead(uint64_t *number, long windows, bool by_blocking_sends) {
    static struct window window;
    for (long i = 0; i < windows; i++) {
        uint64_t first = *number, answer = 0;
        pending answered;
        *number += WINDOW;
        receive_start(&answer, sizeof answer, TAG_ANSWER, &answered);
        if (by_blocking_sends) window_send_now(&window, first);
        else window_send(&window, first);
        await(&answered);
        check_word(answer, ~first, "rate");
    }
}

/* Two windows in turn: the next is posted before the answer that lets the other side fill it. */
static void rate_follow(uint64_t *number, long windows) {
    static struct window both[2];
    window_post(&both[0]);
    meet();
    for (long i = 0; i < windows; i++) {
        uint64_t first = *number, answer = ~first;
        *number += WINDOW;
        window_finish(&both[i % 2], first);
        if (i + 1 < windows) window_post(&both[(i + 1) % 2]);
        send_now(&answer, sizeof answer, TAG_ANSWER);
    }
}

/* Messages a second, answers not counted. */
static double measure_rate(uint64_t *number, long windows, bool by_blocking_sends) {
    double took = 0;
    long parts[2] = {windows / 10 + 1, windows};
    for (int part = 0; part < 2; part++) {
        double start = now_ns();
        if (is_lead()) {
            meet();
            start = now_ns();
            rate_lead(number, parts[part], by_blocking_sends);
        } else {
            rate_follow(number, parts[part]);
        }
        took = now_ns() - start;
    }
    return (double)(windows * WINDOW) / (took / 1e9);
}
