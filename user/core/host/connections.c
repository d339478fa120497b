// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* TCP connections that this host needs: its SSH session, its BGP sessions, the servers that feed it. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <libmnl/libmnl.h>
#include <linux/inet_diag.h>
#include <linux/tcp.h>

#include "base/ini_line.h"
#include "base/memory.h"
#include "base/safe_text.h"
#include "host/host.h"
#include "kernel/interfaces.h"

#define ANCESTORS_MAX 64

/* ---- the SSH session ---- */

#define SSH_VARIABLE "SSH_CONNECTION"
#define SSH_BYTES 256

static FILE *open_of_process(long pid, const char *what)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%ld/%s", pid, what);
	return fopen(path, "re");
}

static bool read_environment(long pid, char value[SSH_BYTES])
{
	FILE_CLOSED FILE *file = open_of_process(pid, "environ");
	FREED char *variable = NULL;
	size_t room = 0;
	bool found = false;

	while (file && !found && getdelim(&variable, &room, '\0', file) > 0)
		found = !strncmp(variable, SSH_VARIABLE "=", strlen(SSH_VARIABLE "="));
	if (found)
		snprintf(value, SSH_BYTES, "%s", variable + strlen(SSH_VARIABLE "="));
	return found;
}

/* The format is "PEER PORT SERVER PORT": see sshd(8). */
bool host_find_ssh(struct host_connection *ssh)
{
	const char *own = secure_getenv(SSH_VARIABLE);
	char value[SSH_BYTES], peer[64], server[64];
	unsigned int peer_port, own_port;
	bool found = own;
	long pid = getppid();
	char line[256];

	if (own)
		snprintf(value, sizeof(value), "%s", own);
	/* sudo and su drop the variable, but a process above them has it. */
	for (int i = 0; i < ANCESTORS_MAX && pid > 0 && !found; i++) {
		FILE_CLOSED FILE *status = open_of_process(pid, "status");

		found = read_environment(pid, value);
		pid = 0;
		while (status && !pid && fgets(line, sizeof(line), status))
			sscanf(line, "PPid: %ld", &pid);
	}
	if (!found || sscanf(value, "%63s %5u %63s %5u", peer, &peer_port, server, &own_port) != 4 ||
	    !host_read_address(peer, &ssh->peer) || !host_read_address(server, &ssh->own) || peer_port > 65535 ||
	    own_port > 65535)
		return false;
	ssh->peer_port = htons(peer_port);
	ssh->own_port = htons(own_port);
	return ssh->peer.family == ssh->own.family;
}

/* ---- connections, as the kernel knows them ---- */

#define ESTABLISHED (1 << 1) /* from <linux/tcp_states.h>, which is not for programs */
#define SYN_SENT (1 << 2)
#define LISTEN (1 << 10)

/*
 * What a BGP speaker has sent at least to a peer that it knows: OPEN and KEEPALIVE (RFC 4271 section 4). So nobody else
 * gets himself protected by a connection to its port.
 */
#define BGP_ACKED_MIN (29 + 19)

/* An attacker may hold any number. Each costs a change many look-ups. */
#define CONNECTIONS_MAX 128

struct search {
	struct host_connections *begun; /* by this host; NULL: looks for listeners */
	struct host_connections *peers; /* that began at HOST_BGP_PORT here; NULL: this is not about BGP */
	bool is_served[1 << 16];        /* own ports of listeners: others begin the connections to these */
	__u32 speaker;                  /* user of a listener at HOST_BGP_PORT; else root */
	size_t listeners;
};

static int read_socket(const struct nlmsghdr *message, void *context)
{
	const struct inet_diag_msg *socket = mnl_nlmsg_get_payload(message);
	struct search *search = context;
	struct host_connections *found = search->begun;
	struct host_connection *added;
	const struct nlattr *attribute;
	struct tcp_info info = {};

	mnl_attr_for_each(attribute, message, sizeof(*socket)) {
		const size_t length = mnl_attr_get_payload_len(attribute);

		if (mnl_attr_get_type(attribute) == INET_DIAG_INFO)
			memcpy(&info, mnl_attr_get_payload(attribute), length < sizeof(info) ? length : sizeof(info));
	}
	if (!found) {
		search->is_served[ntohs(socket->id.idiag_sport)] = true;
		search->listeners++;
		if (socket->id.idiag_sport == htons(HOST_BGP_PORT) && socket->idiag_uid)
			search->speaker = socket->idiag_uid;
		return MNL_CB_OK;
	}
	if (search->peers && socket->id.idiag_sport == htons(HOST_BGP_PORT)) {
		found = search->peers;
		if (info.tcpi_bytes_acked < BGP_ACKED_MIN)
			return MNL_CB_OK;
	} else if (search->is_served[ntohs(socket->id.idiag_sport)] ||
		   /* A client here that anybody can tell where to connect, such as a web hook, must not protect that address. */
		   (search->peers && socket->idiag_uid && socket->idiag_uid != search->speaker)) {
		return MNL_CB_OK;
	}
	if (found->count >= CONNECTIONS_MAX)
		return MNL_CB_OK;
	if (array_grow(&found->connection, found->count, sizeof(*added))) {
		errno = ENOMEM;
		return MNL_CB_ERROR;
	}
	added = &found->connection[found->count++];
	*added = (struct host_connection){ .peer = host_address_of(socket->idiag_family, socket->id.idiag_dst),
					   .own = host_address_of(socket->idiag_family, socket->id.idiag_src),
					   .peer_port = socket->id.idiag_dport,
					   .own_port = socket->id.idiag_sport };
	if (host_is_loopback(&added->peer))
		found->count--;
	return MNL_CB_OK;
}

/*
 * Whether this network namespace may have TCP sockets besides the listeners. The kernel has counted them; to walk through its
 * table of connections takes milliseconds, even if that is empty.
 */
static bool has_connections(size_t listeners)
{
	static const char *const paths[] = { "/proc/thread-self/net/sockstat", "/proc/thread-self/net/sockstat6" };
	size_t sockets = 0, some;
	char line[128];

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		FILE_CLOSED FILE *counts = fopen(paths[i], "re");

		if (!counts)
			return true;
		while (fgets(line, sizeof(line), counts))
			if (sscanf(line, "TCP%*[6:] inuse %zu", &some) == 1)
				sockets += some;
	}
	return sockets != listeners;
}

/*
 * Asks for the listeners; then for the connections to this port of others and, about BGP, from this own port. The kernel runs
 * the conditions: each says how many bytes to go on if it is true, and if it is false. Beyond the end means no.
 */
static int search_sockets(struct search *search, struct host_connections *begun, __u16 port)
{
	struct {
		struct inet_diag_req of;
		struct nlattr attribute;
		struct inet_diag_bc_op either[5];
	} request = { .of.idiag_states = LISTEN,
		      .attribute = { sizeof(request) - sizeof(request.of), INET_DIAG_REQ_BYTECODE },
		      .either = { { INET_DIAG_BC_D_EQ, 8, 12 },
				  { .no = port },
				  { INET_DIAG_BC_JMP, 4, 12 },
				  { INET_DIAG_BC_S_EQ, 8, 12 },
				  { .no = search->peers ? port : 0 } } };
	/* Listeners first: from this port, a stranger may connect to a port that this host serves. */
	int error = netlink_dump(NETLINK_SOCK_DIAG, TCPDIAG_GETSOCK, &request, sizeof(request.of), read_socket, search);

	search->begun = begun;
	request.of.idiag_states = ESTABLISHED | SYN_SENT;
	request.of.idiag_ext = search->peers ? 1 << (INET_DIAG_INFO - 1) : 0;
	if (error || !has_connections(search->listeners))
		return error;
	return netlink_dump(NETLINK_SOCK_DIAG, TCPDIAG_GETSOCK, &request, sizeof(request), read_socket, search);
}

int host_find_bgp(struct host_connections *peers, struct host_connections *servers)
{
	return search_sockets(&(struct search){ .peers = peers }, servers, HOST_BGP_PORT);
}

/* ---- brokers of a fleet ---- */

int host_split(const char *where, char host[HOST_WHERE_BYTES], char port[8])
{
	const char *colon = strrchr(where, ':');
	const bool is_bracketed = *where == '[';
	const char *end;

	snprintf(port, 8, "%d", HOST_BROKER_PORT);
	end = is_bracketed ? strchr(where, ']') : where + strlen(where);
	if (!end || end - where >= HOST_WHERE_BYTES)
		return -EINVAL;
	/* More than one colon without brackets: an IPv6 address alone. */
	if (!is_bracketed && colon && strchr(where, ':') == colon)
		end = colon;
	where += is_bracketed;
	memcpy(host, where, end - where);
	host[end - where] = '\0';
	end += is_bracketed;
	if (!*end)
		return *host ? 0 : -EINVAL;
	if (*end != ':' || strspn(end + 1, "0123456789") != strlen(end + 1) || strlen(end + 1) > 5 || !end[1])
		return -EINVAL;
	strcpy(port, end + 1);
	return *host ? 0 : -EINVAL;
}

static int add_connection(struct host_connections *list, const struct host_connection *connection)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->connection[i].own_port == connection->own_port &&
		    list->connection[i].peer_port == connection->peer_port &&
		    host_is_same(&list->connection[i].peer, &connection->peer))
			return 0;
	if (array_grow(&list->connection, list->count, sizeof(*connection)))
		return -ENOMEM;
	list->connection[list->count++] = *connection;
	return 0;
}

/*
 * Adds the broker, if its address is known without asking anybody, and this host's connections to it. If it has a name,
 * these are all connections to its port: asking a name server may take long, and tell nothing during an attack.
 */
static int add_broker(const char *where, struct host_connections *servers)
{
	struct host_connections found = {};
	struct host_connection broker = { .what = "the fleet's broker" };
	struct search everywhere = {};
	char host[HOST_WHERE_BYTES], port[8];
	bool has_address;
	int error;

	if (*where == '/' || host_split(where, host, port))
		return 0;
	broker.peer_port = htons(atoi(port));
	has_address = host_read_address(host, &broker.peer);
	if (has_address && host_is_loopback(&broker.peer))
		return 0;
	error = has_address ? add_connection(servers, &broker) : 0;
	if (!error)
		error = search_sockets(&everywhere, &found, ntohs(broker.peer_port));
	error = error == -ENOMEM ? error : 0;
	for (size_t i = 0; i < found.count && !error; i++) {
		strcpy(found.connection[i].what, broker.what);
		if (!has_address || host_is_same(&found.connection[i].peer, &broker.peer))
			error = add_connection(servers, &found.connection[i]);
	}
	free(found.connection);
	return error;
}

/* ---- servers of lists by URL, and of CrowdSec ---- */

/* Adds a server, if `address` is one, and not of this host. */
static int add_server(const char *address, unsigned int port, const char *list, struct host_connections *servers)
{
	struct host_connection server = { .peer_port = htons(port) };

	if (!host_read_address(address, &server.peer) || host_is_loopback(&server.peer) || !port || port > 65535 ||
	    servers->count >= CONNECTIONS_MAX)
		return 0;
	snprintf(server.what, sizeof(server.what), "the server of the list '%s',", list);
	return add_connection(servers, &server);
}

/* Adds the server of "https://HOST:PORT/...", if HOST is an address. */
static int add_url(const char *url, const char *list, struct host_connections *servers)
{
	const char *where = strstr(url, "://"), *user;
	char text[HOST_WHERE_BYTES], host[HOST_WHERE_BYTES], port[8];

	if (!where)
		return 0;
	where += strlen("://");
	snprintf(text, sizeof(text), "%.*s", (int)strcspn(where, "/?#"), where);
	user = strrchr(text, '@');
	where = user ? user + 1 : text;
	if (host_split(where, host, port))
		return 0;
	/* A URL without a port has that of its scheme. */
	if (!strchr(*where == '[' ? where + strcspn(where, "]") : where, ':'))
		strcpy(port, strncmp(url, "https", 5) ? "80" : "443");
	return add_server(host, atoi(port), list, servers);
}

/* `path`: of a file that a reader of lists has written. */
static int read_noted(const char *path, struct host_connections *servers)
{
	const char *list = strrchr(path, '/') + strlen("/" HOST_SERVERS_FILE);
	char text[HOST_SERVERS_BYTES] = "", address[64];
	FILE_CLOSED FILE *file = fopen(path, "re");
	unsigned int port;
	struct stat stat;
	int error = 0, used;

	if (file && (fstat(fileno(file), &stat) || stat.st_mtime < time(NULL) - HOST_SERVERS_S ||
		     !fgets(text, sizeof(text), file)))
		*text = '\0';
	for (const char *at = text; !error && sscanf(at, "%63s %5u%n", address, &port, &used) == 2; at += used)
		error = add_server(address, port, list, servers);
	return error;
}

/* ---- what the configuration and the state name ---- */

/* Reads one file of the configuration. What config/ refuses is left out. */
static int read_configuration(const char *path, struct host_connections *servers)
{
	/* Does not wait for the writer of a FIFO. */
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	FILE_CLOSED FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	FREED char *text = NULL;
	char section[64] = "", *word;
	const char *list;
	bool is_first = true;
	size_t room = 0;
	int error = 0;

	while (file && !error && getline(&text, &room, file) > 0) {
		struct ini_line line = ini_line_parse(is_first ? (char *)text_behind_mark(text) : text);
		bool is_broker, is_url;

		is_first = false;
		if (line.kind == INI_SECTION)
			snprintf(section, sizeof(section), "%s", line.name);
		if (line.kind != INI_KEY)
			continue;
		list = !strncmp(section, "list ", 5) ? section + 5 + strspn(section + 5, " ") : section;
		is_broker = !strcmp(section, "fleet") && (!strcmp(line.name, "broker") || !strcmp(line.name, "report"));
		is_url = (list != section || !strcmp(section, "crowdsec")) &&
			 (!strcmp(line.name, "url") || !strcmp(line.name, "sha256-url"));
		while ((is_broker || is_url) && !error && (word = strsep(&line.value, ", \t")))
			if (*word)
				error = is_url ? add_url(word, list, servers) : add_broker(word, servers);
	}
	return error;
}

static const char *also_read; /* NULL: no file */

void host_also_read(const char *path)
{
	also_read = path;
}

/* Reads each file whose path fits the pattern of glob(3). */
static int read_each(const char *pattern, int (*read)(const char *path, struct host_connections *servers),
		     struct host_connections *servers)
{
	glob_t files = {};
	int error = glob(pattern, 0, NULL, &files) == GLOB_NOSPACE ? -ENOMEM : 0;

	for (size_t i = 0; i < files.gl_pathc && !error; i++)
		error = read(files.gl_pathv[i], servers);
	globfree(&files);
	return error;
}

int host_find_servers(const char *state, struct host_connections *servers)
{
	char noted[PATH_MAX];
	int error = read_each(HOST_CONFIG_DIR "/*.conf", read_configuration, servers);

	if (also_read && !error)
		error = read_configuration(also_read, servers);
	if (!error && snprintf(noted, sizeof(noted), "%s/*/" HOST_SERVERS_FILE "*", state ? state : HOST_STATE_DIR) <
			      (int)sizeof(noted))
		error = read_each(noted, read_noted, servers);
	return error;
}
