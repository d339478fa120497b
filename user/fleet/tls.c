// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "fleet/connection.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

struct tls {
	SSL_CTX *context;
	SSL *ssl;
};

/* The certificate must name the host. */
static int set_name(struct tls *tls, const char *name)
{
	struct in6_addr ignored;

	if (inet_pton(AF_INET, name, &ignored) == 1 || inet_pton(AF_INET6, name, &ignored) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls->ssl), name) == 1 ? 0 : -EINVAL;
	SSL_ctrl(tls->ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, (void *)name);
	return SSL_set1_host(tls->ssl, name) == 1 ? 0 : -EINVAL;
}

int tls_open(int fd, const char *name, const char *certificates, struct tls **tls, struct reason *reason)
{
	X509 *certificate;
	struct tls *new;
	size_t trusted = 0;
	BIO *text;
	int error = 0;

	*tls = NULL;
	/* OpenSSL writes by write(): if the broker is gone, that must be an error and no signal. */
	signal(SIGPIPE, SIG_IGN);
	new = calloc(1, sizeof(*new));
	if (new)
		new->context = SSL_CTX_new(TLS_client_method());
	if (!new || !new->context) {
		free(new);
		return reason_set(reason, -ENOMEM, "not enough memory for TLS");
	}
	SSL_CTX_ctrl(new->context, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, NULL);
	SSL_CTX_ctrl(new->context, SSL_CTRL_MODE,
			 SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER, NULL);
	/* A broker that is killed closes the connection without a farewell. Replies have their own lengths. */
	SSL_CTX_set_options(new->context, SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_CTX_set_verify(new->context, SSL_VERIFY_PEER, NULL);
	text = BIO_new_mem_buf(certificates, -1);
	while (text && (certificate = PEM_read_bio_X509_AUX(text, NULL, NULL, NULL))) {
		trusted += X509_STORE_add_cert(SSL_CTX_get_cert_store(new->context), certificate) == 1;
		X509_free(certificate);
	}
	BIO_free(text);
	if (!trusted)
		error = reason_set(reason, -EINVAL, "the file of ca = FILE has no certificate in PEM form");
	if (!error) {
		new->ssl = SSL_new(new->context);
		if (!new->ssl || SSL_set_fd(new->ssl, fd) != 1 || set_name(new, name))
			error = reason_set(reason, -ENOMEM, "not enough memory for TLS");
	}
	if (error)
		tls_close(new);
	else
		*tls = new;
	return error;
}

void tls_close(struct tls *tls)
{
	if (!tls)
		return;
	if (tls->ssl)
		SSL_free(tls->ssl);
	SSL_CTX_free(tls->context);
	free(tls);
}

/* Before each call: an error of an earlier call must not be taken for one of this call. */
static void forget_errors(void)
{
	ERR_clear_error();
	errno = 0;
}

/* What OpenSSL wants after `result`, as -errno; -EAGAIN with *events; -EPROTO: the other end breaks the protocol. */
static int error_of(struct tls *tls, int result, short *events)
{
	switch (SSL_get_error(tls->ssl, result)) {
	case SSL_ERROR_WANT_READ:
		*events = POLLIN;
		return -EAGAIN;
	case SSL_ERROR_WANT_WRITE:
		*events = POLLOUT;
		return -EAGAIN;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	case SSL_ERROR_SYSCALL:
		return errno ? -errno : -ECONNRESET;
	default:
		return -EPROTO;
	}
}

int tls_shake_hands(struct tls *tls, short *events, struct reason *reason)
{
	int error, result;
	long verified;
	const char *text;

	forget_errors();
	result = SSL_connect(tls->ssl);
	if (result == 1)
		return 0;
	error = error_of(tls, result, events);
	if (error == -EAGAIN)
		return error;
	verified = SSL_get_verify_result(tls->ssl);
	if (verified != X509_V_OK)
		return reason_set(reason, -EKEYREJECTED, "its certificate is refused: %s",
				  X509_verify_cert_error_string(verified));
	text = ERR_reason_error_string(ERR_get_error());
	return reason_set(reason, error ? error : -ECONNRESET, "TLS fails: %s",
			  text ? text : "the connection was closed; does this port speak TLS?");
}

/* After the handshake both ends speak TLS: whatever breaks it, the connection is lost. */
static ssize_t count_of(struct tls *tls, int result, short *events)
{
	const int error = result > 0 ? result : error_of(tls, result, events);

	return error == -EPROTO ? -ECONNRESET : error;
}

ssize_t tls_read(struct tls *tls, void *bytes, size_t count, short *events)
{
	forget_errors();
	return count_of(tls, SSL_read(tls->ssl, bytes, count), events);
}

ssize_t tls_write(struct tls *tls, const void *bytes, size_t count, short *events)
{
	forget_errors();
	return count_of(tls, SSL_write(tls->ssl, bytes, count), events);
}
