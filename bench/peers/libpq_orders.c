/* The peer of the store on PostgreSQL: a driver with a thread for each connection on libpq.
 *
 * It does on the tables of our store what our sessions do, with the same statements, prepared once
 * for each connection: log in or sign up, search one to five times, ask for prices, place the order
 * by one call of the same function. Actors and titles are drawn from what is there. It prints its
 * orders and the processor time of the process as one line of JSON.
 *
 *     libpq_orders "host=.. dbname=.." sessions seconds session.sql
 */
#include <libpq-fe.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ACTORS_MAX = 2000, LINES_MAX = 10 };

static const char *conninfo;
static char *session_sql;
static char *actors[ACTORS_MAX], *titles[ACTORS_MAX];
static int known, customers, products;
static double seconds;

struct session {
    pthread_t thread;
    uint64_t state;
    int number;
    long orders, rolled_back, signed_up;
};

static const char *const STATEMENTS[][2] = {
    {"log_in", "SELECT who.customerid, one.prod_id, one.title, other.prod_id, other.title FROM "
               "customers who LEFT JOIN LATERAL (SELECT orderid, prod_id FROM cust_hist WHERE "
               "customerid = who.customerid ORDER BY orderid, prod_id LIMIT 10) bought ON true "
               "LEFT JOIN products one ON one.prod_id = bought.prod_id LEFT JOIN products other "
               "ON other.prod_id = one.common_prod_id WHERE who.username = $1 AND who.password = "
               "$2"},
    {"sign_up", "INSERT INTO customers (firstname, lastname, address1, address2, city, state, zip, "
                "country, region, email, phone, creditcardtype, creditcard, creditcardexpiration, "
                "username, password, age, income, gender) VALUES ('ABCDEF', 'ABCDEFGHIJ', "
                "'12345 ABCDEFG St', NULL, 'ABCDEFG', 'AB', '12345', 'HOME', 1, 'A@store.example', "
                "'1234567890', 1, '1234567890123456', '2030/01', $1, 'password', 40, 40000, 'F') "
                "RETURNING customerid"},
    {"category", "SELECT prod_id, title, actor, (price * 100)::bigint FROM products WHERE category "
                 "= $1::text::smallint AND special = 1 ORDER BY prod_id LIMIT $2::text::bigint"},
    {"actor", "SELECT prod_id, title, actor, (price * 100)::bigint FROM products WHERE "
              "to_tsvector('simple', actor) @@ plainto_tsquery('simple', $1) ORDER BY prod_id "
              "LIMIT $2::text::bigint"},
    {"title", "SELECT prod_id, title, actor, (price * 100)::bigint FROM products WHERE "
              "to_tsvector('simple', title) @@ plainto_tsquery('simple', $1) ORDER BY prod_id "
              "LIMIT $2::text::bigint"},
    {"prices", "SELECT prod_id, (price * 100)::bigint FROM products WHERE prod_id = ANY "
               "($1::text::int[])"},
    {"purchase", "SELECT pg_temp.plimsoll_purchase($1::text::int, '2014-01-01', $2::text::bigint, "
                 "$3::text::bigint, $4::text::int[], $5::text::int[], 3)"},
};

static void fail(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static double now(clockid_t clock) {
    struct timespec at;
    clock_gettime(clock, &at);
    return at.tv_sec + at.tv_nsec / 1e9;
}

/* xorshift64*: a generator of Vigna's. */
static uint64_t draw(struct session *session, uint64_t below) {
    session->state ^= session->state >> 12;
    session->state ^= session->state << 25;
    session->state ^= session->state >> 27;
    return (session->state * 0x2545F4914F6CDD1DULL >> 16) % below;
}

static PGconn *open_connection(void) {
    PGconn *connection = PQconnectdb(conninfo);
    if (PQstatus(connection) != CONNECTION_OK) fail("connect", PQerrorMessage(connection));
    return connection;
}

static PGresult *ask(PGconn *connection, const char *name, int count, const char *const *values) {
    return PQexecPrepared(connection, name, count, values, NULL, NULL, 0);
}

static PGresult *rows(PGconn *connection, const char *name, int count, const char *const *values) {
    PGresult *found = ask(connection, name, count, values);
    if (PQresultStatus(found) != PGRES_TUPLES_OK) fail(name, PQerrorMessage(connection));
    return found;
}

static int compare(const void *one, const void *other) {
    return *(const int *)one - *(const int *)other;
}

static void search(PGconn *connection, struct session *session) {
    char category[16], limit[16];
    const char *values[2] = {category, limit}, *name;
    snprintf(limit, sizeof limit, "%d", 1 + (int)draw(session, 9));
    switch (draw(session, 3)) {
    case 0:
        name = "category";
        snprintf(category, sizeof category, "%d", 1 + (int)draw(session, 16));
        break;
    case 1:
        name = "actor";
        values[0] = actors[draw(session, known)];
        break;
    default:
        name = "title";
        values[0] = titles[draw(session, known)];
    }
    PQclear(rows(connection, name, 2, values));
}

static void visit(PGconn *connection, struct session *session) {
    char name[64], customer[24], net[24], tax[24], list[256], quantities[64];
    PGresult *found;
    if (draw(session, 5) == 0) {
        const char *values[1] = {name};
        snprintf(name, sizeof name, "peer-%ld-%d-%ld", (long)time(NULL), session->number,
                 session->signed_up++);
        found = rows(connection, "sign_up", 1, values);
    } else {
        const char *values[2] = {name, "password"};
        snprintf(name, sizeof name, "user%d", 1 + (int)draw(session, customers));
        found = rows(connection, "log_in", 2, values);
    }
    if (PQntuples(found) == 0) fail(name, "is missing");
    snprintf(customer, sizeof customer, "%s", PQgetvalue(found, 0, 0));
    PQclear(found);
    for (int left = 1 + (int)draw(session, 5); left > 0; left--) search(connection, session);
    int lines = 1 + (int)draw(session, 9), wanted[LINES_MAX], length = 1, taken = 1;
    long cents = 0;
    for (int line = 0; line < lines; line++) wanted[line] = 1 + (int)draw(session, products);
    qsort(wanted, lines, sizeof *wanted, compare);
    strcpy(list, "{");
    strcpy(quantities, "{");
    for (int line = 0; line < lines; line++) {
        const char *joint = line + 1 < lines ? "," : "}";
        length += snprintf(list + length, sizeof list - length, "%d%s", wanted[line], joint);
        taken += snprintf(quantities + taken, sizeof quantities - taken, "%d%s",
                          1 + (int)draw(session, 3), joint);
    }
    const char *asked[1] = {list};
    found = rows(connection, "prices", 1, asked);
    for (int row = 0; row < PQntuples(found); row++) cents += atol(PQgetvalue(found, row, 1));
    PQclear(found);
    snprintf(net, sizeof net, "%ld", cents);
    snprintf(tax, sizeof tax, "%ld", cents * 825 / 10000);
    const char *order[5] = {customer, net, tax, list, quantities};
    for (;;) {
        found = ask(connection, "purchase", 5, order);
        const char *state = PQresultErrorField(found, PG_DIAG_SQLSTATE);
        if (state == NULL) break;
        if (strcmp(state, "PL001") == 0) {
            session->rolled_back++;
            break;
        }
        if (strcmp(state, "40P01") != 0) fail("purchase", PQerrorMessage(connection));
        PQclear(found);
    }
    PQclear(found);
    session->orders++;
}

static void *work(void *given) {
    struct session *session = given;
    PGconn *connection = open_connection();
    PGresult *made = PQexec(connection, session_sql);
    if (PQresultStatus(made) != PGRES_COMMAND_OK) fail("session", PQerrorMessage(connection));
    PQclear(made);
    for (size_t at = 0; at < sizeof STATEMENTS / sizeof *STATEMENTS; at++) {
        made = PQprepare(connection, STATEMENTS[at][0], STATEMENTS[at][1], 0, NULL);
        if (PQresultStatus(made) != PGRES_COMMAND_OK)
            fail(STATEMENTS[at][0], PQerrorMessage(connection));
        PQclear(made);
    }
    double deadline = now(CLOCK_MONOTONIC) + seconds;
    while (now(CLOCK_MONOTONIC) < deadline) visit(connection, session);
    PQfinish(connection);
    return NULL;
}

static void look_around(void) {
    PGconn *connection = open_connection();
    PGresult *found = PQexec(connection,
                             "SELECT (SELECT count(*) FROM customers WHERE username LIKE 'user%'), "
                             "(SELECT max(prod_id) FROM products)");
    if (PQresultStatus(found) != PGRES_TUPLES_OK) fail("tables", PQerrorMessage(connection));
    customers = atoi(PQgetvalue(found, 0, 0));
    products = atoi(PQgetvalue(found, 0, 1));
    PQclear(found);
    found = PQexec(connection, "SELECT actor, title FROM products ORDER BY prod_id LIMIT 2000");
    known = PQntuples(found);
    for (int row = 0; row < known; row++) {
        actors[row] = strdup(PQgetvalue(found, row, 0));
        titles[row] = strdup(PQgetvalue(found, row, 1));
    }
    PQclear(found);
    PQfinish(connection);
}

static void read_session(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) fail(path, "cannot be read");
    session_sql = calloc(1, 65536);
    if (fread(session_sql, 1, 65535, file) == 0) fail(path, "is empty");
    fclose(file);
}

int main(int count, char **given) {
    if (count != 5) fail("usage", "libpq_orders CONNINFO SESSIONS SECONDS SESSION.SQL");
    conninfo = given[1];
    int sessions = atoi(given[2]);
    seconds = atof(given[3]);
    read_session(given[4]);
    look_around();
    struct session *all = calloc(sessions, sizeof *all);
    double begun = now(CLOCK_MONOTONIC), used = now(CLOCK_PROCESS_CPUTIME_ID);
    for (int number = 0; number < sessions; number++) {
        all[number].number = number;
        all[number].state = 88172645463325252ULL + 7919ULL * number;
        if (pthread_create(&all[number].thread, NULL, work, &all[number])) fail("thread", "none");
    }
    long orders = 0, rolled_back = 0;
    for (int number = 0; number < sessions; number++) {
        pthread_join(all[number].thread, NULL);
        orders += all[number].orders;
        rolled_back += all[number].rolled_back;
    }
    double took = now(CLOCK_MONOTONIC) - begun;
    used = now(CLOCK_PROCESS_CPUTIME_ID) - used;
    printf("{\"orders\": %ld, \"rolled_back\": %ld, \"opm\": %.1f, \"processor_ms_per_order\": "
           "%.4f}\n",
           orders, rolled_back, 60 * orders / took, 1000 * used / (orders ? orders : 1));
    return 0;
}
