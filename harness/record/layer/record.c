/* The recording layer of `vk-litmus record`: writes the commands of a program, and the inputs of its dispatches as cases.
 *
 *     VK_LITMUS_RECORD=DIR         an existing folder; each process writes DIR/PID/journal.jsonl and DIR/PID/kinds/
 *     VK_LITMUS_RECORD_KEEP=N      cases per kind of dispatch and sizes of its inputs (default 1); 0 records no contents
 *     VK_LITMUS_RECORD_BYTES=N     limit for the copies of contents (default 1 GiB)
 *
 * Dispatches of one kind have equal modules, entry points, constants, grids and layouts of descriptors. The contents for a case are copied
 * right before the dispatch, in its command buffer, after a barrier. They are written once a fence of the program or of the layer shows that
 * the submission has ended: at the next call that could use the command buffer again, submits or has waited. The layer itself waits for
 * nothing, so contents of the last submissions are lost if the program ends without any such call.
 *
 * Of draws, and of dispatches from shader objects, the journal has what they may access, or that this is not known. */

#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* The version of the journal, which its reader checks (src/journal.rs). */
#define FORMAT_VERSION "4"

#include "chain.h"

#include "abi.h"

#include "objects.h"

#include "formats.h"

#include "contents.h"

enum { INPUT_READ = 0x10 };
enum { MAX_DESCRIPTOR_BUFFERS = 32, MAX_SETS = 32, MAX_PUSH_BYTES = 256, MAX_VERTEX_BUFFERS = 16, MAX_WATCHED_BYTES = 1 << 26 };

typedef struct BoundBuffer {
    uint64_t buffer, offset;
} BoundBuffer;

/* What is bound for dispatches, or for draws. */
typedef struct BindPoint {
    const Pipeline *pipeline;
    uint64_t sets[MAX_SETS];
    DescriptorSet *pushed_sets[MAX_SETS];
    uint32_t *offsets[MAX_SETS];
} BindPoint;

/* The layouts of an attachment: of its stencil aspect, and of all other aspects. UNUSED if a subpass does not use it. */
typedef struct Layouts {
    int32_t main, stencil;
} Layouts;

/* The attachments that draws of a subpass may access: those of fragment outputs by location, and that of depth and stencil. */
enum { MAX_OUTPUTS = 16 };
typedef struct Outputs {
    struct { uint64_t view; int32_t layout; } colours[MAX_OUTPUTS];
    uint64_t depth;
    Layouts depth_layouts;
} Outputs;

/* A command that uses a set which may be updated until the command is submitted. */
typedef struct LateUse {
    const DescriptorSet *set;
    uint64_t use, updates; /* The id of the command's use, and the updates of the set when it was recorded. */
} LateUse;

typedef struct Commands {
    Handle handle, device;
    BindPoint points[POINT_COUNT];
    unsigned char push[MAX_PUSH_BYTES];
    bool is_pushed[MAX_PUSH_BYTES];
    uint64_t descriptor_buffers[MAX_DESCRIPTOR_BUFFERS]; /* Addresses. */
    bool is_conditional;
    int32_t index_type;
    BoundBuffer vertices[MAX_VERTEX_BUFFERS], indices;
    const struct RenderPass *pass;
    uint64_t *attachments; /* The views of its attachments. */
    uint32_t subpass;
    RenderArea area;
    uint32_t layers; /* Of the render pass; 0 for all of each view. */
    Outputs outputs;
    bool is_in_pass, is_suspended; /* Another command buffer resumes the render pass. */
    Text list;      /* The commands, as JSON objects separated by commas. */
    uint64_t id;    /* Of the recorded commands; 0 until they are submitted. */
    LateUse *late_uses;
    uint32_t late_use_count;
    uint64_t late_updates; /* The sum of the updates of their sets when the commands were written. */
    uint64_t fence;         /* Signalled when the last submission has ended; 0 if there is nothing to write. */
    uint64_t program_fence; /* The id of the program's fence with the same meaning, or 0. */
    Capture *captures;
    struct Commands **executed; /* Secondary command buffers. */
    uint32_t executed_count;
    struct Commands *next_in_pool, *next_pending;
} Commands;

typedef struct Pool {
    Commands *first;
} Pool;

static Commands *pending; /* Command buffers with a fence. */
static Buffer *addressed; /* Buffers with an address. */
static Buffer *bound_buffers;
static Mapping *mappings;
static uint64_t watched_bytes;

#define LOCK pthread_mutex_lock(&lock)
#define UNLOCK pthread_mutex_unlock(&lock)
static Commands *find_commands(Handle handle) { return find_object(COMMANDS, (uintptr_t)handle); }

/* Appends a command to the list of its command buffer. */
#define ADD_COMMAND(commands, ...) \
    do { \
        append(&(commands)->list, "%s", (commands)->list.length ? "," : ""); \
        append(&(commands)->list, __VA_ARGS__); \
    } while (0)

/* Runs statements with `commands`, the state of `handle`, if there is one. */
#define WITH_COMMANDS(...) \
    do { \
        LOCK; \
        Commands *commands = find_commands(handle); \
        if (commands) { \
            __VA_ARGS__ \
        } \
        UNLOCK; \
    } while (0)

#include "pipelines.h"

#include "resources.h"

#include "transfers.h"

static void read_descriptor_buffers(const Commands *commands, const BindPoint *point);
static uint64_t set_updates(const DescriptorSet *set);

#include "dispatches.h"

#include "commands.h"

#include "descriptor_buffers.h"

#include "draws.h"

#include "queues.h"

/* Entry points for the loader. */

static Result layer_vkCreateInstance(const void *info, const void *allocator, Handle *created) {
    Result result = create_instance(info, allocator, created);
    LOCK;
    /* Shows that the layer is part of the program. */
    WRITE_EVENT("{\"event\":\"instance\",\"layer\":" FORMAT_VERSION ",\"process\":%ld,\"success\":%s}", (long)getpid(), result == SUCCESS ? "true" : "false");
    UNLOCK;
    return result;
}

static bool has_synchronization2(const DeviceInfo *info) {
    enum { FEATURES_1_3 = 53, SYNCHRONIZATION2 = 1000314007 };
    const struct { int32_t type; const void *next; uint32_t before[9], synchronization2; } *at;
    for (const Header *next = info->next; next; next = next->next) {
        at = (const void *)next;
        if ((next->type == FEATURES_1_3 && at->synchronization2) || (next->type == SYNCHRONIZATION2 && at->before[0])) return true;
    }
    return false;
}

static Result layer_vkCreateDevice(Handle physical, const DeviceInfo *info, const void *allocator, Handle *created) {
    Result result = create_device(physical, info, allocator, created);
    if (result != SUCCESS) return result;
    struct { int32_t type; void *next; uint32_t api, driver, vendor, device; int32_t kind; char name[256], rest[4096]; } properties = { .type = PROPERTIES2 };
    const DeviceState *state = device_state(*created);
    if (state->instance->get_properties2) state->instance->get_properties2(physical, &properties);
    LOCK;
    device_robustness[device_index(*created)] = enabled_robustness(info);
    Text line = { 0 };
    append(&line, "{\"event\":\"device\",\"device\":%u,\"name\":", state->generation);
    append_string(&line, properties.name);
    append(&line, ",\"has_synchronization2\":%s}", has_synchronization2(info) ? "true" : "false");
    write_line(&line);
    UNLOCK;
    return result;
}

static void layer_vkDestroyDevice(Handle device, const void *allocator) {
    if (!device) return;
    DeviceState *state = device_state(device);
    LOCK;
    write_ended(device, true, 0);
    /* Memory that the program did not free ends with the device. */
    for (const Mapping *mapping = mappings; mapping;) {
        const Mapping *next = mapping->next;
        if (mapping->device == device) forget_mapping(mapping->handle);
        mapping = next;
    }
    UNLOCK;
    CALL_NEXT(device, void, vkDestroyDevice, (Handle, const void *))(device, allocator);
    state->key = NULL;
}

static Function find_layer_function(const char *name) {
    COMMON_LAYER_FUNCTIONS
    LAYER_FUNCTION(vkDestroyDevice)
    PIPELINE_FUNCTIONS
    RESOURCE_FUNCTIONS
    DISPATCH_FUNCTIONS
    COMMAND_FUNCTIONS
    DESCRIPTOR_BUFFER_FUNCTIONS
    TRANSFER_FUNCTIONS
    DRAW_FUNCTIONS
    QUEUE_FUNCTIONS
    return NULL;
}
