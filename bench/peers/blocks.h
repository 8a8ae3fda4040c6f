/* bandwidth_job, bandwidth_own, bandwidth_stream: large blocks between two ranks, over the calls that words.h lists
 * and one more that the program defines:
 *
 *   put_now(from, offset, bytes)    writes at this offset of the other rank's job memory; complete there on return
 *   put_arrived()                   makes what was put visible here, after its notification
 *
 * The loop is that of our own bench: one block in flight, the time counted from block to block without what the
 * states do before (writing each line) and after (reading each line). */

/* Blocks to send and blocks to receive. */
struct blocks {
    uint64_t *source, *target;
    size_t words, slots;
    bool fresh, by_put;
    uint64_t number;
    double clock_ns;
};

/* Bytes of the blocks of one direction. */
static size_t area_of(const struct options *o) { return slots_of(o) * o->bytes; }

/* The most of them that any shape needs: of what a program on line is asked for only the largest size is known. */
static size_t area_max(const struct options *o) {
    struct options largest = *o;
    if (o->on_line) largest.cold = true;
    return area_of(&largest);
}

/* Takes over memory for both directions, page aligned, and touches all of it. */
static struct blocks new_blocks(const struct options *o, void *memory) {
    struct blocks b = {.source = memory, .by_put = asks_for(o, "put"), .clock_ns = clock_cost_ns()};
    memset(memory, 1, 2 * area_max(o));
    return b;
}

static void shape_blocks(struct blocks *b, const struct options *o) {
    b->words = o->bytes / sizeof(uint64_t);
    b->slots = slots_of(o);
    b->fresh = o->fresh;
    b->target = b->source + area_of(o) / sizeof(uint64_t);
}

static long blocks_of(const struct options *o, size_t at_once) {
    long blocks = (long)(MOVED_BYTES / (o->bytes * at_once));
    return iterations(o, blocks < 2 ? 2 : blocks > BLOCKS_MAX ? BLOCKS_MAX : blocks);
}

static void write_block(const struct blocks *b, size_t slot, uint64_t value) {
    uint64_t *block = b->source + slot * b->words;
    for (size_t i = 0; b->fresh && i < b->words; i += LINE_WORDS) block[i] = value;
    block[0] = value;
    block[b->words - 1] = value;
}

static void read_block(const struct blocks *b, size_t slot, uint64_t value) {
    const uint64_t *block = b->target + slot * b->words;
    uint64_t wrong = 0;
    for (size_t i = 0; b->fresh && i < b->words; i += LINE_WORDS) wrong |= block[i] ^ value;
    wrong |= (block[0] ^ value) | (block[b->words - 1] ^ value);
    check_word(wrong, 0, "bandwidth");
}

static void send_block(struct blocks *b, size_t slot) {
    size_t bytes = b->words * sizeof(uint64_t);
    const uint64_t *block = b->source + slot * b->words;
    if (b->by_put) {
        size_t target = (size_t)((char *)b->target - (char *)b->source);
        put_now(block, target + slot * bytes, bytes);
        send_now(&b->number, sizeof b->number, TAG_NOTE);
    } else {
        send_now(block, bytes, TAG_WORD);
    }
}

static void await_block(struct blocks *b, pending *arriving) {
    await(arriving);
    if (b->by_put) put_arrived();
}

/* That many blocks each way; what they took in ns. */
static double exchange_blocks(struct blocks *b, long count) {
    double took = 0;
    for (long i = 0; i < count; i++) {
        uint64_t number = ++b->number, note = 0;
        size_t slot = number % b->slots;
        pending arriving;
        write_block(b, slot, number);
        if (b->by_put) receive_start(&note, sizeof note, TAG_NOTE, &arriving);
        else receive_start(b->target + slot * b->words, b->words * sizeof(uint64_t), TAG_WORD, &arriving);
        meet();
        double start = now_ns();
        if (is_lead()) send_block(b, slot);
        await_block(b, &arriving);
        if (!is_lead()) send_block(b, slot);
        took += now_ns() - start - b->clock_ns;
        if (b->by_put) check_word(note, number, "notification");
        read_block(b, slot, number);
    }
    return took;
}

/* Bytes a second of one block in flight. */
static double measure_blocks(struct blocks *b, long count) {
    exchange_blocks(b, (long)b->slots + 1);
    double took = exchange_blocks(b, count);
    return 2.0 * (double)count * (double)(b->words * sizeof(uint64_t)) / (took / 1e9);
}

/* Windows of blocks from lead to follow with one answer each; what they took in ns. In hot memory all blocks of a
 * window are the same one, as in OSU's programs. */
static double stream_windows(struct blocks *b, long windows) {
    static pending all[WINDOW];
    size_t bytes = b->words * sizeof(uint64_t), used = b->slots < WINDOW ? b->slots : WINDOW;
    double took = 0;
    for (long w = 0; w < windows; w++) {
        uint64_t number = ++b->number, answer = 0;
        size_t first = number * WINDOW;
        pending answered;
        if (is_lead()) {
            for (size_t i = 0; i < used; i++) write_block(b, (first + i) % b->slots, number);
            receive_start(&answer, sizeof answer, TAG_ANSWER, &answered);
            meet();
            double start = now_ns();
            for (size_t i = 0; i < WINDOW; i++)
                send_start(b->source + (first + i) % b->slots * b->words, bytes, TAG_WORD, &all[i]);
            await_all(all, WINDOW);
            await(&answered);
            took += now_ns() - start - b->clock_ns;
            check_word(answer, number, "bandwidth_stream");
        } else {
            for (size_t i = 0; i < WINDOW; i++)
                receive_start(b->target + (first + i) % b->slots * b->words, bytes, TAG_WORD, &all[i]);
            meet();
            await_all(all, WINDOW);
            send_now(&number, sizeof number, TAG_ANSWER);
            for (size_t i = 0; i < used; i++) read_block(b, (first + i) % b->slots, number);
        }
    }
    return took;
}

/* Bytes a second of windows of blocks. */
static double measure_stream(struct blocks *b, long windows) {
    stream_windows(b, 1);
    double took = stream_windows(b, windows);
    return (double)windows * WINDOW * (double)(b->words * sizeof(uint64_t)) / (took / 1e9);
}
