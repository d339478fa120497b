/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets of every flow without end, each judged by the model. As in traffic.c a batch fits the veth's queue, a
 * marker follows it, and a veth keeps the order: what has not come before the marker never will.
 */
#ifndef XDP_CUCKOO_SOAK_STREAM_H
#define XDP_CUCKOO_SOAK_STREAM_H

#include "helpers/wire.h"
#include "journal.h"
#include "model.h"

#define STREAM_RESEND_MS 200 /* a marker that is late, or lost while the interface was changed */
#define STREAM_SLOT_BITS 8
#define STREAM_MARKER ((1U << STREAM_SLOT_BITS) - 1)

struct stream_tally {
	uint64_t sent, dropped, passed, uncertain, wrong; /* dropped, passed: rightly */
};

struct stream_frame {
	uint8_t bytes[FRAME_BYTES_MAX];
	size_t length;
};

/* One frame on its way. */
struct stream_slot {
	uint32_t flow, epoch;
	enum model_verdict verdict;
	bool has_come;
};

struct stream {
	const struct model *model;
	struct journal *journal;
	struct wire_end from, to;
	uint8_t mac[2][ETH_ALEN];
	struct stream_frame *frame; /* of each flow */
	struct wire_batch batch;
	struct stream_slot slot[WIRE_BATCH_FRAMES];
	uint32_t number, run_epoch, last_run_epoch; /* of the batch, and how the filter ran then */
	uint32_t id, next_flow;
	uint64_t start_ns;
	uint64_t resent, late;
	struct stream_tally tally[MODEL_KINDS + 1];
	_Atomic uint64_t rounds; /* of all flows */
	_Atomic bool is_stopping;
};

/* ---- sending ---- */

static inline void stream_build(struct stream *stream)
{
	const struct frame_trailer none = { 0 };

	stream->frame = calloc(stream->model->flows, sizeof(*stream->frame));
	if (!stream->frame)
		abort();
	for (uint32_t i = 0; i < stream->model->flows; i++) {
		char text[MODEL_TEXT_BYTES];
		struct frame_flow flow;

		memcpy(text, stream->model->flow[i].text, sizeof(text));
		if (frame_parse(text, &flow)) {
			fprintf(stderr, "not a flow: %s\n", stream->model->flow[i].text);
			exit(2);
		}
		stream->frame[i].length = frame_build(&flow, stream->mac, &none, stream->frame[i].bytes);
	}
}

static inline struct frame_trailer stream_trailer(const struct stream *stream, uint32_t slot)
{
	return (struct frame_trailer){ FRAME_TRAILER_MAGIC, stream->id, stream->number << STREAM_SLOT_BITS | slot };
}

/* The flow's epoch is read before what it guards, and before the packet is sent. */
static inline void stream_add(struct stream *stream, uint32_t index)
{
	const struct model_flow *flow = &stream->model->flow[index];
	const struct stream_frame *frame = &stream->frame[index];
	const struct frame_trailer trailer = stream_trailer(stream, stream->batch.count);
	struct stream_slot *slot = &stream->slot[stream->batch.count];
	uint8_t *bytes = wire_frame(&stream->batch);

	*slot = (struct stream_slot){ .flow = index, .epoch = atomic_load(&stream->model->unit[flow->unit].epoch) };
	slot->verdict = model_verdict_at(stream->model, flow, stream->start_ns);
	memcpy(bytes, frame->bytes, frame->length);
	memcpy(bytes + frame->length - sizeof(trailer), &trailer, sizeof(trailer));
	wire_add(&stream->batch, frame->length);
}

static inline int stream_send_marker(struct stream *stream)
{
	const struct frame_trailer marker = stream_trailer(stream, STREAM_MARKER);

	wire_add(&stream->batch, frame_build_marker(stream->mac, &marker, wire_frame(&stream->batch)));
	return wire_send(&stream->from, &stream->batch);
}

/* ---- receiving ---- */

/* A frame that comes after the marker of its batch has been judged as dropped. */
static inline void stream_note_late(struct stream *stream)
{
	stream->late++;
	if (stream->last_run_epoch != atomic_load(&stream->model->run.epoch))
		return;
	journal_wrong(stream->journal, "a frame came after its batch");
}

/* Whether it was this batch's marker. */
static inline bool stream_take(struct stream *stream, const struct frame_trailer *trailer)
{
	const uint32_t slot = trailer->index & STREAM_MARKER;

	if (trailer->run != stream->id)
		return false;
	if (trailer->index >> STREAM_SLOT_BITS != (stream->number & UINT32_MAX >> STREAM_SLOT_BITS)) {
		if (slot != STREAM_MARKER)
			stream_note_late(stream);
		return false;
	}
	if (slot == STREAM_MARKER)
		return true;
	stream->slot[slot].has_come = true;
	return false;
}

static inline int stream_await(struct stream *stream)
{
	struct pollfd ready = { .fd = stream->to.fd, .events = POLLIN };
	struct frame_trailer trailer[WIRE_BATCH_FRAMES];
	bool is_complete = false;
	int error = 0;

	while (!is_complete && !error) {
		int count = 0;

		if (poll(&ready, 1, STREAM_RESEND_MS) == 0) {
			stream->resent++;
			error = stream_send_marker(stream);
		} else {
			count = wire_receive(&stream->to, STREAM_RESEND_MS, trailer);
		}
		if (count < 0)
			error = count;
		for (int i = 0; i < count; i++)
			is_complete |= stream_take(stream, &trailer[i]);
	}
	return error;
}

/* ---- judging ---- */

static inline void stream_say_wrong(struct stream *stream, const struct stream_slot *slot)
{
	const struct model_flow *flow = &stream->model->flow[slot->flow];

	journal_wrong(stream->journal, "packet %u.%u %s, and must be %s: %s", stream->number,
		      (unsigned int)(slot - stream->slot), slot->has_come ? "passed" : "was dropped",
		      slot->verdict == MODEL_PASS ? "passed" : "dropped", flow->text);
}

/* Fences are in the loads: what the epochs guard was read between them. */
static inline void stream_judge(struct stream *stream, const struct stream_slot *slot, uint64_t now_ns,
				bool is_run_certain)
{
	const struct model_flow *flow = &stream->model->flow[slot->flow];
	struct stream_tally *tally = &stream->tally[flow->kind];
	const enum model_verdict verdict = model_verdict_at(stream->model, flow, now_ns);

	atomic_thread_fence(memory_order_seq_cst);
	tally->sent++;
	if (!is_run_certain || slot->epoch % 2 || verdict != slot->verdict || verdict == MODEL_UNCERTAIN ||
	    slot->epoch != atomic_load(&stream->model->unit[flow->unit].epoch)) {
		tally->uncertain++;
	} else if (slot->has_come != (verdict == MODEL_PASS)) {
		tally->wrong++;
		stream_say_wrong(stream, slot);
	} else {
		tally->passed += verdict == MODEL_PASS;
		tally->dropped += verdict == MODEL_DROP;
	}
}

static inline int stream_batch(struct stream *stream)
{
	const struct model_run *run = &stream->model->run;
	unsigned int count;
	uint64_t now_ns;
	int error;

	stream->number++;
	stream->last_run_epoch = stream->run_epoch;
	stream->run_epoch = atomic_load(&run->epoch);
	stream->start_ns = model_now_ns();
	for (unsigned int i = 0; i < WIRE_BATCH_FRAMES; i++) {
		stream_add(stream, stream->next_flow);
		stream->next_flow = (stream->next_flow + 1) % stream->model->flows;
		if (!stream->next_flow)
			atomic_fetch_add(&stream->rounds, 1);
	}
	count = stream->batch.count;
	error = stream_send_marker(stream);
	if (!error)
		error = stream_await(stream);
	now_ns = model_now_ns();
	for (unsigned int i = 0; i < count && !error; i++) {
		const bool is_run_certain = stream->run_epoch % 2 == 0 && stream->run_epoch == atomic_load(&run->epoch);

		stream_judge(stream, &stream->slot[i], now_ns, is_run_certain);
	}
	return error;
}

/* The thread: until it is to stop. What the wire refuses ends the program. */
static inline void *stream_flow(void *context)
{
	struct stream *stream = context;

	if (wire_pin_cpu())
		exit(2);
	while (!atomic_load(&stream->is_stopping))
		if (stream_batch(stream))
			exit(2);
	return NULL;
}

/* Leaves this thread in the receiver's namespace. 0; -errno, having said why. */
static inline int stream_open(struct stream *stream, const struct model *model, struct journal *journal,
			      const char *from, const char *to)
{
	int error;

	stream->model = model;
	stream->journal = journal;
	stream->id = (uint32_t)model_now_ns();
	error = wire_open(from, 0, &stream->from);
	if (!error)
		error = wire_open(to, ETH_P_ALL, &stream->to);
	if (error)
		return error;
	memcpy(stream->mac[0], stream->to.mac, ETH_ALEN);
	memcpy(stream->mac[1], stream->from.mac, ETH_ALEN);
	stream_build(stream);
	return 0;
}

/* ---- what came of it ---- */

static inline struct stream_tally stream_total(const struct stream *stream)
{
	struct stream_tally total = { 0 };

	for (size_t kind = 0; kind <= MODEL_KINDS; kind++) {
		const struct stream_tally *tally = &stream->tally[kind];

		total.sent += tally->sent;
		total.dropped += tally->dropped;
		total.passed += tally->passed;
		total.uncertain += tally->uncertain;
		total.wrong += tally->wrong;
	}
	return total;
}

static inline void stream_print_row(const char *name, const struct stream_tally *tally)
{
	printf("%-10s %11lu %11lu %11lu %11lu %6lu\n", name, tally->sent, tally->dropped, tally->passed,
	       tally->uncertain, tally->wrong);
}

static inline void stream_print(const struct stream *stream)
{
	const struct stream_tally total = stream_total(stream);

	printf("%-10s %11s %11s %11s %11s %6s\n", "flows", "sent", "dropped", "passed", "changing", "wrong");
	for (size_t kind = 0; kind <= MODEL_KINDS; kind++)
		stream_print_row(kind < MODEL_KINDS ? model_kinds[kind].name : "policies", &stream->tally[kind]);
	stream_print_row("all", &total);
}

/* Packets of each kind were dropped, and others passed. */
static inline bool stream_has_seen_all(const struct stream *stream)
{
	for (size_t kind = 0; kind <= MODEL_KINDS; kind++)
		if (!stream->tally[kind].dropped || !stream->tally[kind].passed)
			return false;
	return true;
}

#endif
