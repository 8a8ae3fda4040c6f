/* handler: 8 bytes to a function of the other rank, which answers with 8, over UCP's active messages. Rank 0 asks and
 * looks for the answer all the while; rank 1 looks for what it is asked. The function answers before it returns, by a
 * message of its own. The word is the message's data: as its header it takes 134 ns instead of 126. */

enum { HANDLER_CALLS = 20000 };
enum { ID_CALL = 1, ID_ANSWER = 2 };

/* One call is under way at a time. */
static struct {
    uint64_t sent, answer;     /* what this rank sent last; of rank 0, what it was answered */
    long calls, answers;       /* that have come here */
} handler;

static void send_word(unsigned id, uint64_t word) {
    static const ucp_request_param_t plain = {0};
    handler.sent = word;
    pending p = ucp_am_send_nbx(endpoint, id, NULL, 0, &handler.sent, sizeof handler.sent, &plain);
    if (__builtin_expect(UCS_PTR_IS_ERR(p), 0)) fail("active message", ucs_status_string(UCS_PTR_STATUS(p)));
    /* It goes on by itself, and its word stays: the next one is sent when the other rank has had this one. */
    if (p) ucp_request_free(p);
}

static uint64_t word_of(const void *data, size_t bytes) {
    uint64_t word = 0;
    check(bytes == sizeof word, "active message");
    memcpy(&word, data, sizeof word);
    return word;
}

static ucs_status_t called(void *nothing, const void *header, size_t header_bytes, void *data, size_t bytes,
                           const ucp_am_recv_param_t *how) {
    (void)nothing, (void)header, (void)header_bytes, (void)how;
    handler.calls++;
    send_word(ID_ANSWER, ~word_of(data, bytes));
    return UCS_OK;
}

static ucs_status_t answered(void *nothing, const void *header, size_t header_bytes, void *data, size_t bytes,
                             const ucp_am_recv_param_t *how) {
    (void)nothing, (void)header, (void)header_bytes, (void)how;
    handler.answers++;
    handler.answer = word_of(data, bytes);
    return UCS_OK;
}

static void on_message(unsigned id, ucp_am_recv_callback_t function) {
    ucp_am_handler_param_t of_handler = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB,
        .id = id,
        .cb = function,
    };
    expect_ok(ucp_worker_set_am_recv_handler(worker, &of_handler), "ucp_worker_set_am_recv_handler");
}

static void begin_handler(const struct options *o) {
    if (o->bytes != sizeof(uint64_t)) fail(o->name, "has 8 bytes");
    if (o->by) fail(o->name, "is not played by what --by says");
    on_message(ID_CALL, called);
    on_message(ID_ANSWER, answered);
    meet();
}

static void handler_rounds(uint64_t *number, long rounds) {
    if (is_lead()) {
        for (long answers = handler.answers + rounds; handler.answers < answers;) {
            long before = handler.answers;
            uint64_t word = ++*number;
            send_word(ID_CALL, word);
            while (handler.answers == before) ucp_worker_progress(worker);
            check_word(handler.answer, ~word, "handler");
        }
    } else {
        for (long calls = handler.calls + rounds; handler.calls < calls;) ucp_worker_progress(worker);
    }
}

/* There and back in ns. */
static double measure_handler(uint64_t *number, long rounds) {
    handler_rounds(number, rounds / 10 + 1);
    double start = now_ns();
    handler_rounds(number, rounds);
    return (now_ns() - start) / (double)rounds;
}
