/* A device in C, written from docs/reference/wire.md: one episode, one report, over plain HTTP to this machine.

       cc -o client client.c -lm && echo '{"steps": [[0, 0.5, 1]]}' | ./client PORT TOKEN

   The input says what the person lives through; "tape" (hexadecimal) replaces the entropy and "id" the
   id, for vectors. It keeps no outbox, so it is a test of that page and not a client for people. It
   declines policy searches. */

#include <arpa/inet.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

typedef unsigned char byte;

static void decline(const char *why) {
    fprintf(stderr, "declined: %s\n", why);
    exit(1);
}

/* ---- Texts that grow ---- */

typedef struct { char *at; size_t size; } Text;

static void add(Text *text, const void *more, size_t size) {
    text->at = realloc(text->at, text->size + size + 1);
    memcpy(text->at + text->size, more, size);
    text->at[text->size += size] = 0;
}

static void say(Text *text, const char *more) { add(text, more, strlen(more)); }

/* ---- SHA-256, HMAC, hexadecimal, base64 ---- */

static uint32_t K[64], START[8];

static void prepare(void) { /* the first bits of roots of primes */
    int found = 0;
    for (int n = 2; found < 64; n++) {
        int prime = 1;
        for (int d = 2; d * d <= n; d++) prime &= n % d != 0;
        if (!prime) continue;
        if (found < 8) START[found] = (uint32_t)(uint64_t)floorl(fmodl(sqrtl(n), 1) * 4294967296.0L);
        K[found++] = (uint32_t)(uint64_t)floorl(fmodl(cbrtl(n), 1) * 4294967296.0L);
    }
}

static uint32_t turn(uint32_t x, int n) { return x >> n | x << (32 - n); }

static void sha256(const void *data, size_t size, byte out[32]) {
    uint32_t state[8], w[64];
    size_t padded = (size + 8) / 64 * 64 + 64;
    byte *all = calloc(padded, 1);
    memcpy(all, data, size);
    all[size] = 0x80;
    for (int i = 0; i < 8; i++) all[padded - 1 - i] = (byte)((uint64_t)size * 8 >> 8 * i);
    memcpy(state, START, sizeof state);
    for (byte *block = all; block < all + padded; block += 64) {
        for (int i = 0; i < 16; i++)
            w[i] = (uint32_t)block[4 * i] << 24 | block[4 * i + 1] << 16 | block[4 * i + 2] << 8 | block[4 * i + 3];
        for (int i = 16; i < 64; i++)
            w[i] = w[i - 16] + w[i - 7] + (turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3) +
                   (turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10);
        uint32_t v[8];
        memcpy(v, state, sizeof v);
        for (int i = 0; i < 64; i++) {
            uint32_t one = v[7] + (turn(v[4], 6) ^ turn(v[4], 11) ^ turn(v[4], 25)) +
                           ((v[4] & v[5]) ^ (~v[4] & v[6])) + K[i] + w[i];
            uint32_t two = (turn(v[0], 2) ^ turn(v[0], 13) ^ turn(v[0], 22)) +
                           ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
            memmove(v + 1, v, 7 * sizeof *v);
            v[4] += one;
            v[0] = one + two;
        }
        for (int i = 0; i < 8; i++) state[i] += v[i];
    }
    for (int i = 0; i < 32; i++) out[i] = (byte)(state[i / 4] >> (24 - 8 * (i % 4)));
    free(all);
}

static void hmac(const void *key, size_t length, const char *message, byte out[32]) {
    byte pad[64] = {0}, inner[32];
    Text text = {0};
    if (length > 64) sha256(key, length, pad);
    else memcpy(pad, key, length);
    for (int side = 0; side < 2; side++) {
        byte mixed[64];
        for (int i = 0; i < 64; i++) mixed[i] = pad[i] ^ (side ? 0x5c : 0x36);
        text.size = 0;
        add(&text, mixed, 64);
        if (side) add(&text, inner, 32);
        else say(&text, message);
        sha256(text.at, text.size, side ? out : inner);
    }
}

static char *hex(const byte *bytes, int size) {
    char *out = malloc(2 * size + 1);
    for (int i = 0; i < size; i++) sprintf(out + 2 * i, "%02x", bytes[i]);
    return out;
}

static char *hashed(const Text *text) {
    byte digest[32];
    sha256(text->at, text->size, digest);
    return hex(digest, 32);
}

static const char LETTERS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static Text base64(const byte *bytes, int size) {
    Text text = {0};
    for (int i = 0; i < size; i += 3) {
        uint32_t group = 0;
        for (int j = 0; j < 3; j++) group = group << 8 | (i + j < size ? bytes[i + j] : 0);
        for (int j = 0; j < 4; j++)
            add(&text, i + j > size ? "=" : &LETTERS[group >> (18 - 6 * j) & 63], 1);
    }
    return text;
}

static byte *from_base64(const char *text) {
    byte *out = malloc(strlen(text) + 8), *at = out;
    uint32_t group = 0;
    for (int i = 0; text[i] && text[i] != '='; i++) {
        group = group << 6 | (uint32_t)(strchr(LETTERS, text[i]) - LETTERS);
        if (i % 4) *at++ = (byte)(group >> (6 - 2 * (i % 4)));
    }
    return out;
}

/* ---- JSON: read, and spelt by RFC 8785 (names of the wire are ASCII) ---- */

typedef struct Node {
    char kind; /* { [ " 0 t f n */
    Text text; /* of strings, and numbers as they stood there */
    int size;
    char **names;
    struct Node **items;
} Node;

static const char *here;

static void skip(void) { here += strspn(here, " \t\r\n"); }

static void add_point(Text *text, uint32_t c) {
    byte utf[4] = {(byte)c};
    int size = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    if (size > 1) {
        for (int i = size - 1; i; i--, c >>= 6) utf[i] = 0x80 | (c & 63);
        utf[0] = (byte)(0xF00 >> size | c);
    }
    add(text, utf, size);
}

static Text read_text(void) {
    Text text = {0};
    say(&text, "");
    for (here++; *here != '"'; here++) {
        if (*here != '\\') {
            if (!*here) decline("JSON breaks off");
            add(&text, here, 1);
        } else if (*++here == 'u') {
            uint32_t c = 0, low = 0;
            sscanf(here + 1, "%4x", &c);
            here += 4;
            if (c >> 10 == 0x36 && sscanf(here + 1, "\\u%4x", &low) == 1) {
                c = 0x10000 + ((c & 0x3ff) << 10 | (low & 0x3ff));
                here += 6;
            }
            add_point(&text, c);
        } else {
            const char *known = "b\bf\fn\nr\rt\t", *found = strchr(known, *here);
            add(&text, found && strchr("bfnrt", *here) ? found + 1 : here, 1);
        }
    }
    here++;
    return text;
}

static Node *read_json(void) {
    Node *node = calloc(1, sizeof *node);
    skip();
    node->kind = *here;
    if (*here == '"') {
        node->text = read_text();
    } else if (*here == '{' || *here == '[') {
        char last = *here++ == '{' ? '}' : ']';
        for (skip(); *here != last; skip()) {
            node->names = realloc(node->names, (node->size + 1) * sizeof(char *));
            node->items = realloc(node->items, (node->size + 1) * sizeof(Node *));
            if (last == '}') {
                node->names[node->size] = read_text().at;
                skip();
                here++; /* the colon */
            }
            node->items[node->size++] = read_json();
            skip();
            if (*here == ',') here++;
        }
        here++;
    } else {
        size_t size = strcspn(here, ",]} \t\r\n");
        add(&node->text, here, size);
        here += size;
        if (strchr("-0123456789", node->kind)) node->kind = '0';
    }
    return node;
}

static Node *parse(const char *text) {
    here = text;
    return read_json();
}

static Node *field(const Node *node, const char *name) {
    for (int i = 0; node && node->kind == '{' && i < node->size; i++)
        if (!strcmp(node->names[i], name)) return node->items[i];
    return NULL;
}

static Node *needed(const Node *node, const char *name) {
    Node *found = field(node, name);
    if (!found) decline(name);
    return found;
}

static const char *text_of(const Node *node, const char *name) { return needed(node, name)->text.at; }
static int whole_of(const Node *node, const char *name) { return atoi(text_of(node, name)); }

static void spell_number(Text *text, double x) { /* as ECMAScript prints it */
    char digits[40], out[64];
    int places = 1;
    if (x == 0) return say(text, "0");
    for (; places <= 17; places++) {
        sprintf(digits, "%.*e", places - 1, fabs(x));
        if (atof(digits) == fabs(x)) break;
    }
    int power = atoi(strchr(digits, 'e') + 1) + 1; /* 0.digits times ten to the power */
    if (places > 1) memmove(digits + 1, digits + 2, places - 1);
    digits[places] = 0;
    if (x < 0) say(text, "-");
    if (places <= power && power <= 21) sprintf(out, "%s%.*s", digits, power - places, "000000000000000000000");
    else if (0 < power && power <= 21) sprintf(out, "%.*s.%s", power, digits, digits + power);
    else if (-6 < power && power <= 0) sprintf(out, "0.%.*s%s", -power, "000000", digits);
    else sprintf(out, "%.1s%s%s%s%d", digits, places > 1 ? "." : "", digits + 1, power > 0 ? "e+" : "e-", abs(power - 1));
    say(text, out);
}

static void spell_text(Text *text, const char *content) {
    say(text, "\"");
    for (; *content; content++) {
        const char *short_form = strchr("\"\"\\\\\bb\ff\nn\rr\tt", *content);
        char escaped[8];
        if ((byte)*content >= 0x20 && *content != '"' && *content != '\\') {
            add(text, content, 1);
        } else {
            if (strchr("\"\\\b\f\n\r\t", *content)) sprintf(escaped, "\\%c", short_form[1]);
            else sprintf(escaped, "\\u%04x", *content);
            say(text, escaped);
        }
    }
    say(text, "\"");
}

static void spell(Text *text, const Node *node) {
    if (node->kind == '"') return spell_text(text, node->text.at);
    if (node->kind == '0') return spell_number(text, atof(node->text.at));
    if (node->kind != '{' && node->kind != '[') return say(text, node->text.at);
    int *order = malloc((node->size + 1) * sizeof *order);
    for (int i = 0; i < node->size; i++) { /* insertion sort by name */
        int at = i;
        for (; node->kind == '{' && at && strcmp(node->names[order[at - 1]], node->names[i]) > 0; at--) order[at] = order[at - 1];
        order[at] = i;
    }
    for (int i = 0; i < node->size; i++) {
        say(text, i ? "," : node->kind == '{' ? "{" : "[");
        if (node->kind == '{') {
            spell_text(text, node->names[order[i]]);
            say(text, ":");
        }
        spell(text, node->items[order[i]]);
    }
    say(text, node->kind == '{' ? (node->size ? "}" : "{}") : node->size ? "]" : "[]");
}

/* ---- Draws ---- */

static const char *tape;

static void fresh(byte *out, int count) {
    if (!tape) {
        if (getrandom(out, count, 0) != count) decline("no entropy");
        return;
    }
    for (; count; count--, tape += 2) {
        unsigned value;
        if (sscanf(tape, "%2x", &value) != 1) decline("the tape is used up");
        *out++ = (byte)value;
    }
}

static uint64_t bits(int k) {
    byte raw[8];
    uint64_t value = 0;
    int count = (k + 7) / 8;
    fresh(raw, count);
    for (int i = 0; i < count; i++) value = value << 8 | raw[i];
    return value >> (8 * count - k);
}

static uint64_t below(uint64_t n) {
    int k = 0;
    while (n >> k) k++;
    for (;;) {
        uint64_t drawn = bits(k);
        if (drawn < n) return drawn;
    }
}

static int happens(const Node *how, const char *name) { return bits(64) < strtoull(text_of(how, name), NULL, 10); }

/* ---- HTTP ---- */

static int port;

static char *ask(const char *path, const char *token, const Text *body) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int line = socket(AF_INET, SOCK_STREAM, 0);
    Text request = {0}, answer = {0};
    char head[600], chunk[4096];
    if (connect(line, (struct sockaddr *)&address, sizeof address)) decline("nobody answers");
    sprintf(head, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n", body ? "POST" : "GET", path);
    say(&request, head);
    if (body) {
        sprintf(head, "Authorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n", token, body->size);
        say(&request, head);
    }
    say(&request, "\r\n");
    if (body) add(&request, body->at, body->size);
    if (write(line, request.at, request.size) != (ssize_t)request.size) decline("the line broke");
    for (ssize_t got; (got = read(line, chunk, sizeof chunk)) > 0;) add(&answer, chunk, got);
    close(line);
    char *content = answer.size ? strstr(answer.at, "\r\n\r\n") : NULL;
    if (!content || strncmp(answer.at + 9, "200", 3)) decline(content ? content + 4 : "no answer");
    return content + 4;
}

/* ---- The device ---- */

static Node *task, *rules, *policy;
static int H, S, A, N, raw; /* N places; raw: the trajectory itself is reported */

static int act(int h, int s) {
    const Node *how = needed(policy, "policy");
    if (!strcmp(text_of(how, "kind"), "table")) return atoi(needed(how, "actions")->items[h]->items[s]->text.at);
    double chances[A], sum = 0;
    byte *raw = from_base64(text_of(needed(how, "probabilities"), "data"));
    memcpy(chances, raw + 8 * (h * S + s) * A, sizeof chances); /* a little-endian machine */
    for (int a = 0; a < A; a++) chances[a] = sum += chances[a];
    double u = bits(53) / 9007199254740992.0 * sum;
    for (int a = 0; a < A; a++)
        if (chances[a] > u) return a;
    return A - 1;
}

static int place(int s) { return field(rules, "places") ? atoi(field(rules, "places")->items[s]->text.at) : s; }

static void read_task(const char *text) {
    Text terms = {0}, checked = {0};
    const char *names[] = {"absorbing_state", "agent", "name", "reward_range", "task", "unit"};
    task = parse(text);
    if (whole_of(task, "wire") != 3) decline("another version of the protocol; update the older side");
    for (int i = 0; i < 6; i++) { /* in their order; "wire" comes last */
        say(&terms, i ? "," : "{");
        spell_text(&terms, names[i]);
        say(&terms, ":");
        spell(&terms, needed(task, names[i]));
    }
    rules = needed(task, "rules");
    say(&terms, field(rules, "places") ? ",\"wire\":3}" : ",\"wire\":2}");
    if (strcmp(hashed(&terms), text_of(task, "task_id"))) decline("the id is not the hash of the terms");
    spell(&checked, rules);
    if (whole_of(rules, "version") != 1) decline("another version of the rules");
    raw = !strcmp(text_of(rules, "report"), "trajectory");
    if (!raw && strcmp(text_of(rules, "report"), "cells")) decline("a report that this program cannot make");
    H = whole_of(rules, "horizon"), S = whole_of(rules, "states"), A = whole_of(rules, "actions");
    const Node *facts = needed(task, "task"), *sizes = needed(facts, "sizes");
    if (whole_of(facts, "horizon") != H || whole_of(sizes, "states") != S || whole_of(sizes, "actions") != A)
        decline("the rules are those of another task");
    if (field(facts, "rule")) decline("a rule for people who come back, which needs an outbox");
    for (int s = 0; s < S; s++)
        if (place(s) >= N) N = place(s) + 1;
}

static double unit_reward(double reward) {
    const Node *range = needed(task, "reward_range");
    double low = atof(range->items[0]->text.at), high = atof(range->items[1]->text.at);
    double x = (reward - low) / (high - low);
    return x > 0 ? (x < 1 ? x : 1) : 0;
}

static void live(const Node *steps, int *s, int *a, double *x) {
    const Node *known = needed(needed(task, "task"), "known"), *ends = field(known, "terminal");
    byte *terminal = ends ? from_base64(text_of(ends, "data")) : calloc(S, 1);
    int left = whole_of(task, "absorbing_state"), n = steps->size;
    double after = 0;
    for (int h = 0; h < n; h++) {
        Node **step = steps->items[h]->items;
        s[h] = atoi(step[0]->text.at);
        x[h] = unit_reward(atof(step[1]->text.at));
        s[h + 1] = atoi(step[2]->text.at);
    }
    if (n && terminal[s[n]]) {
        left = s[n];
        if (field(known, "end_reward")) memcpy(&after, from_base64(text_of(needed(known, "end_reward"), "data")), 8);
    }
    for (int h = n; h < H; h++) {
        if (h > n || !n) s[h] = left;
        x[h] = after;
    }
    if (n < H) s[H] = left;
    for (int h = 0; h < H; h++) a[h] = act(h, s[h]);
}

static Text cells(const char *id, const int *s, const double *x) {
    Text both = {0};
    byte digest[32], packed[1 << 17] = {0};
    uint64_t coin = 0;
    say(&both, text_of(task, "task_id"));
    say(&both, ":");
    say(&both, id);
    sha256(both.at, both.size, digest);
    for (int i = 0; i < 8; i++) coin = coin << 8 | digest[i];
    coin >>= 1;
    const char *kinds[] = {"step", "move", "reward"};
    int h = (int)(coin % H), kind = 0;
    const Node *asked = field(needed(policy, "context"), "questions");
    if (asked && atoi(needed(asked, "shape")->items[0]->text.at) == 3 * H) {
        double u = (double)((coin * 1327217885u) & 0x7fffffff) / 2147483648.0, share;
        byte *raw = from_base64(text_of(asked, "data"));
        int n = 0;
        for (; n < 3 * H - 1; n++) {
            memcpy(&share, raw + 8 * n, 8);
            if (share > u) break;
        }
        h = n / 3, kind = n % 3;
    }
    if (h == H - 1) kind = 2;
    const Node *how = needed(needed(rules, "cells"), kinds[kind]);
    int at = place(s[h]), next = place(s[h + 1]), over = field(rules, "places") && at == N - 1;
    uint64_t r = over || kind == 1 ? 0 : (uint64_t)floor(x[h] * 16777216 + 0.5);
    int rho = below(16777216) < r, D = whole_of(how, "domain");
    if (over) next = 0; /* nothing more is told */
    int cell = kind == 0 ? (2 * at + rho) * N + next : kind == 1 ? at * N + next : 2 * at + rho;
    if (!strcmp(text_of(how, "randomizer"), "subset")) {
        int *others = malloc(D * sizeof *others), size = whole_of(how, "size"), count = 0;
        for (int c = 0; c < D; c++)
            if (c != cell) others[count++] = c;
        for (int i = 0; i < size; i++) {
            int j = i + (int)below(D - 1 - i), kept = others[i];
            others[i] = others[j], others[j] = kept;
        }
        if (happens(how, "own")) others[size - 1] = cell;
        for (int i = 0; i < size; i++) packed[others[i] / 8] |= 1 << others[i] % 8;
    } else if (!strcmp(text_of(how, "randomizer"), "unary")) {
        for (int c = 0; c < D; c++)
            if (happens(how, c == cell ? "keep" : "flip")) packed[c / 8] |= 1 << c % 8;
    } else {
        decline("an unknown randomizer");
    }
    return base64(packed, 8 * ((D + 63) / 64));
}

static Text trajectory(const int *s, const int *a, const double *x) {
    Text raw = {0};
    add(&raw, s, 4 * (H + 1)); /* a little-endian machine */
    add(&raw, a, 4 * H);
    add(&raw, x, 8 * H);
    return base64((byte *)raw.at, (int)raw.size);
}

int main(int count, char **given) {
    static char input[1 << 20];
    Text sent = {0}, policy_text = {0}, made_by = {0};
    char path[60], version[20];
    byte seat[32], name[32];
    if (count != 3 || fread(input, 1, sizeof input - 1, stdin) == 0) decline("usage: client PORT TOKEN < steps");
    prepare();
    port = atoi(given[1]);
    Node *life = parse(input);
    read_task(ask("/v1/task", NULL, NULL));
    say(&policy_text, ask("/v1/policy", NULL, NULL));
    policy = parse(policy_text.at);
    if (strcmp(text_of(policy, "task_id"), text_of(task, "task_id"))) decline("a policy of another task");
    if (field(life, "tape")) tape = text_of(life, "tape");

    char *id;
    Text about = {0};
    say(&about, "tacit ids of ");
    say(&about, text_of(task, "task_id"));
    hmac(given[2], strlen(given[2]), about.at, seat);
    hmac(seat, 32, "0", name);
    if (field(life, "id")) id = (char *)text_of(life, "id");
    else if (!strcmp(text_of(task, "ids"), "token")) id = hex(name, 16);
    else fresh(name, 16), id = hex(name, 16);

    int s[H + 1], a[H];
    double x[H];
    live(needed(life, "steps"), s, a, x);
    sprintf(version, "%d", whole_of(policy, "version"));
    sprintf(path, "/v1/taking/%s", version);
    Node *taking = parse(ask(path, NULL, NULL));
    if (needed(taking, "taken")->kind != 't') decline(text_of(taking, "reason"));
    if (strcmp(text_of(taking, "publication"), hashed(&policy_text))) decline("the collector lost this policy");

    Text message = raw ? trajectory(s, a, x) : cells(id, s, x);
    if (tape && *tape) decline("the tape is not used up");
    spell(&made_by, rules);
    const char *parts[] = {"{\"reports\":[{\"id\":\"", id, "\",\"message\":\"", message.at, "\",\"publication\":\"",
                           hashed(&policy_text), "\",\"rules\":\"", hashed(&made_by), "\",\"version\":", version,
                           "}],\"task_id\":\"", text_of(task, "task_id"), "\"}"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) say(&sent, parts[i]);
    Node *answer = parse(ask("/v1/reports", given[2], &sent));
    printf("%s\n", text_of(needed(answer, "outcomes")->items[0], "outcome"));
    return 0;
}
