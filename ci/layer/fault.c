/* A Vulkan layer that injects faults into a driver, to test how the program handles wrong results, hangs, crashes and errors.
 *
 * VK_LITMUS_LAYER_FAULT selects the fault. N is a period or an ordinal number, CALL the name of a function:
 *
 *     empty-submission:N     one submission in N executes nothing, and its fence is signalled
 *     earlier-commands:N     one submission in N executes the commands of the one before it
 *     early-fence:N          the fence of one submission in N is signalled early; its work executes with the next submission
 *     no-wait:N              one wait in N returns success immediately
 *     device-lost:N          submission N loses the device
 *     lost-once:N            the same, but later submissions succeed
 *     garbage:N              from wait N on, all memory that the host can read is overwritten before it is read
 *     zeros:N                the same, with zero
 *     flipped-bits:N         after one wait in N, one bit is inverted in every fourth word that the host reads
 *     swapped-words:N        the same, with words of different instances exchanged
 *     stale-words:N          the same, with the words of an earlier wait
 *     late-words:N           from wait N on, each word of mapped memory that is 0 or 1 is inverted 2 ms after the wait, once
 *                            for each wait
 *     late-bit:N             the same, for one bit of one word of each memory
 *     stuck-bit:N            from wait N on, one bit in each page of mapped memory is set
 *     early-words:N          before one submission in N, each word of mapped memory that is 0 or 1 is inverted
 *     early-bit:N            the same, for one bit in each page of mapped memory
 *     running-words:N        the same as late-words, but during submissions
 *     doubled-words:N, rare-bits:N
 *                            the same, but words that are 1 or 2 are doubled, or a bit of one small word in 64 is inverted
 *     dropped-writes:N       one wait in N restores the small words of mapped memory that the wait before it left
 *     twice:N                one submission in N executes twice in sequence
 *     no-dispatch:N          one dispatch in N is left out when it is recorded
 *     twice-dispatch:N       one dispatch in N is recorded twice
 *     half-dispatch:N        one dispatch in N of several workgroups executes half of them
 *     more-dispatch:N        one dispatch in N has an additional workgroup
 *     double-dispatch:N      one dispatch in N has twice the workgroups
 *     second-row:N           one dispatch in N executes its workgroups again in another row of y
 *     rotated-dispatch:N     one dispatch in N has its workgroups in y instead of x
 *     shifted-dispatch:N     one dispatch in N has workgroups from 1 instead of 0
 *     late-dispatch:N        one dispatch in N executes after the next copy
 *     old-sets:N             one binding of descriptor sets in N is omitted: the previous sets stay bound
 *     old-pipeline:N         the same for pipelines
 *     short-range:N          one buffer in N is bound with its first 64 bytes only
 *     shared-memory:N        one buffer in N is bound to the memory of the previous one
 *     no-barrier:N           one barrier in N is omitted
 *     swapped-bindings:N, swapped-images:N
 *                            one update of descriptors in N exchanges the first two buffers or images that differ
 *     larger-local:N         the workgroup size of one shader in N is larger by 1 in x
 *     double-local:N         the workgroup size of one shader in N is doubled in x
 *     smaller-local:N        the workgroup size of one shader in N is halved in x
 *     opcode:A-B             shaders have instruction B instead of each A, as from a faulty compiler
 *     builtin:A-B            shaders read the built-in B instead of A
 *     swapped-branch         shaders have the targets of branches exchanged
 *     new-values             atomic additions return the new value
 *     lane-new-values:N      the same in the invocation with index N in its workgroup
 *     earlier-module:N       one shader in N is the one before it, as from a cache with colliding keys
 *     no-draw:N, twice-draw:N, half-draw:N
 *                            the same for draws; half-draw draws half of the vertices
 *     more-draw:N, double-draw:N
 *                            one draw in N has an additional vertex, or twice the vertices
 *     old-constants:N        one update of push constants in N is omitted: the previous values stay
 *     no-fill:N, no-copy:N   one buffer fill or copy in N is omitted
 *     copy-hole:N            one copy in N of more than 128 bytes does not write 64 bytes in its middle
 *     short-fill:N           one fill in N ends after 64 bytes
 *     copy-shift:N           one copy in N writes at an offset that is 4 bytes too large
 *     copy-swap:N            one copy in N of at least 16 bytes exchanges the first two words
 *     no-image-fill:N        one copy of a buffer to an image in N is omitted
 *     no-image-read:N        one copy of an image to a buffer in N is omitted
 *     image-fill-hole:N      one copy of a buffer to an image in N does not write 16 texels in the middle of each row
 *     image-read-hole:N      the same for copies of an image to a buffer
 *     row-pitch:N            one copy of a buffer to an image in N reads the rows 16 texels too far apart
 *     other-layer:N          one view in N shows the second layer of its image
 *     shifted-view:N         one view of a texel buffer in N starts 256 bytes late
 *     old-binding:N          one descriptor in N keeps the memory that its binding had in the previous set
 *     shadow-map:N           one mapping in N maps a copy: host and device do not see each other's writes
 *     shifted-map:N          one mapping in N starts 64 bytes late
 *     one-way-map:N          one mapping in N does not show the host's writes to the device
 *     endless-wait:N         from wait N on, waits return a timeout
 *     no-update:N            one update of descriptors in N omits its last write
 *     short-constants:N      one update of push constants in N ends after 4 bytes
 *     zero-fill:N            one fill in N writes zero
 *     ticks-back             each timestamp is less than the one before it
 *     memory-types           the driver reports 1,000 memory types
 *     no-memory-types        the driver reports no memory type
 *     zero-heaps             memory heaps have size zero
 *     device-only            no memory type is host-visible
 *     all-flags              every memory type has every property flag
 *     bad-heap               every memory type is in a heap that does not exist
 *     no-compute             no queue family has compute
 *     half-subgroups, double-subgroups
 *                            the device reports half or twice its subgroup size
 *     zero-limits, huge-limits
 *                            every limit is zero, or has all bits set
 *     wild-name              the device name has terminal escape sequences and no end
 *     half-size              a buffer reports half of its size
 *     no-types, zero-size, zero-alignment
 *                            a buffer reports no memory types, size zero, or alignment zero
 *     no-device, list-fails  the driver lists no device, or the enumeration fails
 *     fail:CALL, lost:CALL, unknown:CALL
 *                            the call returns out of memory, device lost, or a result code that Vulkan does not have
 *     later-fail:CALL        the call returns out of memory from the fifth time on
 *     crash:CALL, hang:CALL  the call crashes or hangs
 *     memory:CALL            the call allocates memory without limit
 *     fork:CALL              the call forks a process that keeps all open files
 *     daemon:CALL            the same, in a new session
 *     leave:CALL             the call forks a process that continues in a new session, and the caller exits
 *
 * faults.tsv has the expected verdict for each. A test builds this file with `cc` and compares. It is not shipped.
 *
 * It needs no Vulkan headers: chain.h declares the structures that it reads. */

#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "../../harness/record/layer/chain.h"

typedef struct SubmitInfo {
    int32_t type;
    const void *next;
    uint32_t wait_count;
    const uint64_t *waits;
    const uint32_t *stages;
    uint32_t command_count;
    const Handle *commands;
    uint32_t signal_count;
    const uint64_t *signals;
} SubmitInfo;

typedef struct BufferCopy {
    uint64_t from, to, size;
} BufferCopy;
/* Bytes that a copy omits. */
enum { HOLE_BYTES = 64 };

typedef struct MemoryAllocateInfo {
    int32_t type;
    const void *next;
    uint64_t size;
    uint32_t memory_type;
} MemoryAllocateInfo;

typedef struct MemoryRequirements {
    uint64_t size, alignment;
    uint32_t types;
} MemoryRequirements;

typedef struct BufferRange {
    uint64_t buffer, offset, range;
} BufferRange;

typedef struct DescriptorWrite {
    int32_t type;
    const void *next;
    uint64_t set;
    uint32_t binding, element, count;
    int32_t kind;
    const struct BoundImage *images;
    const BufferRange *buffers;
    const uint64_t *views;
} DescriptorWrite;

/* The selected fault. */

static const char *fault_specification(void) {
    const char *fault = getenv("VK_LITMUS_LAYER_FAULT");
    return fault ? fault : "";
}

static int is_fault(const char *name) {
    size_t length = strlen(name);
    return strncmp(fault_specification(), name, length) == 0 && (fault_specification()[length] == 0 || fault_specification()[length] == ':');
}

static const char *fault_argument(void) {
    const char *colon = strchr(fault_specification(), ':');
    return colon ? colon + 1 : "";
}

static unsigned long fault_number(void) {
    unsigned long found = strtoul(fault_argument(), NULL, 10);
    return found ? found : 1;
}

/* Returns true for every Nth of the counted commands. */
static int is_nth(unsigned long *recorded) { return ++*recorded % fault_number() == 0; }

/* The fault of a call by its name. */
static Result inject_call_fault(const char *call) {
    if (strcmp(fault_argument(), call) != 0) return SUCCESS;
    if (is_fault("crash")) abort();
    while (is_fault("hang")) sleep(1);
    while (is_fault("memory")) {
        volatile char *block = malloc(1 << 26);
        for (int byte = 0; block && byte < 1 << 26; byte += 4096) block[byte] = 1;
        usleep(50000);
    }
    if (is_fault("fork") && fork() == 0) {
        sleep(600);
        _exit(0);
    }
    if (is_fault("daemon") && fork() == 0) {
        setsid();
        if (fork() == 0) sleep(600);
        _exit(0);
    }
    if (is_fault("leave")) {
        if (fork() != 0) _exit(0);
        setsid();
    }
    if (is_fault("lost")) return DEVICE_LOST;
    if (is_fault("unknown")) return -123456;
    static unsigned long calls;
    if (is_fault("later-fail") && ++calls > 4) return OUT_OF_DEVICE_MEMORY;
    return is_fault("fail") ? OUT_OF_DEVICE_MEMORY : SUCCESS;
}

#include "reports.h"
#include "mapped.h"

/* Work whose fence is signalled already. */
static struct { Handle queue; SubmitInfo work; Handle *commands; } deferred;

/* The calls. */

#define CALLS(X) \
    X(vkBeginCommandBuffer, (Handle handle, const void *info), (handle, info)) \
    X(vkEndCommandBuffer, (Handle handle), (handle)) \
    X(vkResetFences, (Handle handle, uint32_t count, const uint64_t *fences), (handle, count, fences)) \
    X(vkAllocateCommandBuffers, (Handle handle, const void *info, Handle *created), (handle, info, created)) \
    X(vkAllocateDescriptorSets, (Handle handle, const void *info, uint64_t *created), (handle, info, created)) \
    X(vkCreateComputePipelines, \
      (Handle handle, uint64_t cache, uint32_t count, const void *infos, const void *allocator, uint64_t *created), \
      (handle, cache, count, infos, allocator, created)) \
    CREATE(X, vkCreateBuffer) CREATE(X, vkCreateCommandPool) CREATE(X, vkCreateDescriptorPool) \
    CREATE(X, vkCreateDescriptorSetLayout) CREATE(X, vkCreateFence) CREATE(X, vkCreatePipelineLayout)
#define CREATE(X, name) \
    X(name, (Handle handle, const void *info, const void *allocator, uint64_t *created), (handle, info, allocator, created))

#define DEFINE(name, parameters, arguments) \
    static Result layer_##name parameters { \
        Result changed = inject_call_fault(#name); \
        if (changed) return changed; \
        return ((Result(*) parameters)next_function(handle, #name)) arguments; \
    }
CALLS(DEFINE)

static Result layer_vkAllocateMemory(Handle handle, const MemoryAllocateInfo *info, const void *allocator, uint64_t *created) {
    Result result = inject_call_fault("vkAllocateMemory");
    if (result) return result;
    result = ((Result(*)(Handle, const MemoryAllocateInfo *, const void *, uint64_t *))next_function(handle, "vkAllocateMemory"))(
        handle, info, allocator, created);
    if (result == SUCCESS && mapped_count < sizeof mapped / sizeof *mapped) {
        mapped[mapped_count].memory = *created;
        mapped[mapped_count].size = info->size;
        mapped[mapped_count].copy = NULL;
        mapped[mapped_count++].pointer = NULL;
    }
    return result;
}

static Result layer_vkBindBufferMemory(Handle handle, uint64_t buffer, uint64_t memory, uint64_t offset) {
    static unsigned long bound;
    static struct { uint64_t memory, offset; } last;
    Result result = inject_call_fault("vkBindBufferMemory");
    if (result) return result;
    int is_shared = is_fault("shared-memory") && is_nth(&bound) && last.memory;
    if (is_shared) {
        uint64_t sizes[2] = {0, 1};
        for (unsigned i = 0; i < mapped_count; i++) {
            if (mapped[i].memory == last.memory) sizes[0] = mapped[i].size;
            if (mapped[i].memory == memory) sizes[1] = mapped[i].size;
        }
        is_shared = sizes[0] == sizes[1];
    }
    result = ((Result(*)(Handle, uint64_t, uint64_t, uint64_t))next_function(handle, "vkBindBufferMemory"))(
        handle, buffer, is_shared ? last.memory : memory, is_shared ? last.offset : offset);
    last.memory = memory;
    last.offset = offset;
    return result;
}

static void layer_vkFreeMemory(Handle handle, uint64_t memory, const void *allocator) {
    pthread_mutex_lock(&mapped_lock);
    for (unsigned i = 0; i < mapped_count; i++)
        if (mapped[i].memory == memory) mapped[i] = mapped[--mapped_count];
    pthread_mutex_unlock(&mapped_lock);
    ((void (*)(Handle, uint64_t, const void *))next_function(handle, "vkFreeMemory"))(handle, memory, allocator);
}

static Result layer_vkMapMemory(
    Handle handle, uint64_t memory, uint64_t offset, uint64_t size, uint32_t flags, void **pointer) {
    Result result = inject_call_fault("vkMapMemory");
    if (result) return result;
    result = ((Result(*)(Handle, uint64_t, uint64_t, uint64_t, uint32_t, void **))next_function(handle, "vkMapMemory"))(
        handle, memory, offset, size, flags, pointer);
    static unsigned long maps;
    for (unsigned i = 0; i < mapped_count; i++) {
        if (result != SUCCESS || mapped[i].memory != memory) continue;
        if (is_fault("shadow-map") && is_nth(&maps)) {
            void *copy = malloc(mapped[i].size);
            if (!copy) return OUT_OF_HOST_MEMORY;
            *pointer = memcpy(copy, *pointer, mapped[i].size);
        }
        mapped[i].pointer = (char *)*pointer - offset;
        if (is_fault("one-way-map") && offset == 0 && is_nth(&maps) && (mapped[i].copy = malloc(mapped[i].size)))
            *pointer = memcpy(mapped[i].copy, *pointer, mapped[i].size);
    }
    if (result == SUCCESS && is_fault("shifted-map") && is_nth(&maps)) *pointer = (char *)*pointer + 64;
    return result;
}

#include "modules.h"
#include "images.h"

/* Commands that are omitted or changed. */

/* A dispatch that executes after the next copy, or before the next change of state. */
static struct LateDispatch { Handle commands; uint32_t x, y, z; } late_dispatch;

static void record_late_dispatch(Handle commands) {
    struct LateDispatch late = late_dispatch;
    if (!late.commands || late.commands != commands) return;
    late_dispatch.commands = NULL;
    ((void (*)(Handle, uint32_t, uint32_t, uint32_t))next_function(commands, "vkCmdDispatch"))(commands, late.x, late.y, late.z);
}

static void layer_vkCmdDispatch(Handle commands, uint32_t x, uint32_t y, uint32_t z) {
    static unsigned long recorded;
    void (*dispatch)(Handle, uint32_t, uint32_t, uint32_t) =
        (void (*)(Handle, uint32_t, uint32_t, uint32_t))next_function(commands, "vkCmdDispatch");
    if (is_fault("no-dispatch") && is_nth(&recorded)) return;
    if (is_fault("late-dispatch") && is_nth(&recorded)) {
        late_dispatch = (struct LateDispatch){commands, x, y, z};
        return;
    }
    if (is_fault("shifted-dispatch") && is_nth(&recorded)) {
        ((void (*)(Handle, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t))next_function(commands, "vkCmdDispatchBase"))(
            commands, 1, 0, 0, x, y, z);
        return;
    }
    if (is_fault("twice-dispatch") && is_nth(&recorded)) dispatch(commands, x, y, z);
    if (is_fault("half-dispatch") && x > 1 && is_nth(&recorded)) x /= 2;
    if (is_fault("more-dispatch") && is_nth(&recorded)) x += 1;
    if (is_fault("double-dispatch") && is_nth(&recorded)) x *= 2;
    if (is_fault("second-row") && is_nth(&recorded)) y += 1;
    if (is_fault("rotated-dispatch") && is_nth(&recorded)) {
        y *= x;
        x = 1;
    }
    dispatch(commands, x, y, z);
}

static void layer_vkCmdDraw(Handle commands, uint32_t vertices, uint32_t instances, uint32_t first, uint32_t instance) {
    static unsigned long recorded;
    void (*draw)(Handle, uint32_t, uint32_t, uint32_t, uint32_t) =
        (void (*)(Handle, uint32_t, uint32_t, uint32_t, uint32_t))next_function(commands, "vkCmdDraw");
    if (is_fault("no-draw") && is_nth(&recorded)) return;
    if (is_fault("twice-draw") && is_nth(&recorded)) draw(commands, vertices, instances, first, instance);
    if (is_fault("half-draw") && vertices > 1 && is_nth(&recorded)) vertices /= 2;
    if (is_fault("more-draw") && is_nth(&recorded)) vertices += 1;
    if (is_fault("double-draw") && is_nth(&recorded)) vertices *= 2;
    draw(commands, vertices, instances, first, instance);
}

static void layer_vkCmdBindPipeline(Handle commands, int32_t point, uint64_t pipeline) {
    record_late_dispatch(commands);
    static unsigned long recorded;
    if (is_fault("old-pipeline") && is_nth(&recorded)) return;
    ((void (*)(Handle, int32_t, uint64_t))next_function(commands, "vkCmdBindPipeline"))(commands, point, pipeline);
}

static void layer_vkCmdBindDescriptorSets(
    Handle commands, int32_t point, uint64_t layout, uint32_t first, uint32_t count, const uint64_t *sets,
    uint32_t offset_count, const uint32_t *offsets) {
    record_late_dispatch(commands);
    static unsigned long recorded;
    if (is_fault("old-sets") && is_nth(&recorded)) return;
    ((void (*)(Handle, int32_t, uint64_t, uint32_t, uint32_t, const uint64_t *, uint32_t, const uint32_t *))next_function(
        commands, "vkCmdBindDescriptorSets"))(commands, point, layout, first, count, sets, offset_count, offsets);
}

static void layer_vkCmdPipelineBarrier(
    Handle commands, uint32_t from, uint32_t to, uint32_t flags, uint32_t memories, const void *memory,
    uint32_t buffers, const void *buffer, uint32_t images, const void *image) {
    static unsigned long recorded;
    if (is_fault("no-barrier") && is_nth(&recorded)) return;
    ((void (*)(Handle, uint32_t, uint32_t, uint32_t, uint32_t, const void *, uint32_t, const void *, uint32_t, const void *))
         next_function(commands, "vkCmdPipelineBarrier"))(
        commands, from, to, flags, memories, memory, buffers, buffer, images, image);
}

static void layer_vkUpdateDescriptorSets(
    Handle handle, uint32_t count, const DescriptorWrite *writes, uint32_t copies, const void *copied) {
    static unsigned long updates;
    DescriptorWrite *changed = calloc(count ? count : 1, sizeof *changed);
    if (!changed) abort();
    memcpy(changed, writes, count * sizeof *changed);
    if (is_fault("swapped-bindings")) exchange_descriptors(changed, count, 0);
    if (is_fault("swapped-images")) exchange_descriptors(changed, count, 1);
    if (is_fault("old-binding")) rebind_earlier_memory(changed, count);
    if (is_fault("no-update") && count && is_nth(&updates)) count--;
    BufferRange *ranges = calloc(count ? count : 1, sizeof *ranges);
    if (!ranges) abort();
    for (uint32_t i = 0; i < count; i++)
        if (is_fault("short-range") && changed[i].buffers && changed[i].count == 1 && is_nth(&updates)) {
            ranges[i] = *changed[i].buffers;
            ranges[i].range = 64;
            changed[i].buffers = ranges + i;
        }
    ((void (*)(Handle, uint32_t, const DescriptorWrite *, uint32_t, const void *))next_function(handle, "vkUpdateDescriptorSets"))(
        handle, count, changed, copies, copied);
    free(ranges);
    free(changed);
}

static void layer_vkGetBufferMemoryRequirements(Handle handle, uint64_t buffer, MemoryRequirements *requirements) {
    ((void (*)(Handle, uint64_t, MemoryRequirements *))next_function(handle, "vkGetBufferMemoryRequirements"))(handle, buffer, requirements);
    if (is_fault("no-types")) requirements->types = 0;
    if (is_fault("zero-size")) requirements->size = 0;
    if (is_fault("half-size")) requirements->size /= 2;
    if (is_fault("zero-alignment")) requirements->alignment = 0;
}

static Result layer_vkGetQueryPoolResults(
    Handle handle, uint64_t pool, uint32_t first, uint32_t count, size_t bytes, uint64_t *ticks, uint64_t stride,
    uint32_t flags) {
    static uint64_t last = UINT64_MAX;
    Result result = ((Result(*)(Handle, uint64_t, uint32_t, uint32_t, size_t, uint64_t *, uint64_t, uint32_t))next_function(
        handle, "vkGetQueryPoolResults"))(handle, pool, first, count, bytes, ticks, stride, flags);
    if (is_fault("ticks-back"))
        for (size_t at = 0; at < bytes / sizeof *ticks; at++) ticks[at] = last -= 1000;
    return result;
}

static void layer_vkCmdPushConstants(
    Handle commands, uint64_t layout, uint32_t stages, uint32_t offset, uint32_t size, const void *values) {
    record_late_dispatch(commands);
    static unsigned long recorded;
    if (is_fault("old-constants") && is_nth(&recorded)) return;
    if (is_fault("short-constants") && size > 4 && is_nth(&recorded)) size = 4;
    ((void (*)(Handle, uint64_t, uint32_t, uint32_t, uint32_t, const void *))next_function(commands, "vkCmdPushConstants"))(
        commands, layout, stages, offset, size, values);
}

static void layer_vkCmdFillBuffer(Handle commands, uint64_t buffer, uint64_t offset, uint64_t size, uint32_t value) {
    static unsigned long recorded;
    if (is_fault("no-fill") && is_nth(&recorded)) return;
    if (is_fault("zero-fill") && is_nth(&recorded)) value = 0;
    if (is_fault("short-fill") && size > 64 && is_nth(&recorded)) size = 64;
    ((void (*)(Handle, uint64_t, uint64_t, uint64_t, uint32_t))next_function(commands, "vkCmdFillBuffer"))(
        commands, buffer, offset, size, value);
}

static void layer_vkCmdCopyBuffer(Handle commands, uint64_t from, uint64_t to, uint32_t count, const void *regions) {
    static unsigned long recorded;
    if (is_fault("no-copy") && is_nth(&recorded)) return;
    const BufferCopy *whole = regions;
    if (is_fault("copy-swap") && count == 1 && whole->size >= 16 && is_nth(&recorded)) {
        BufferCopy parts[3] = {*whole, *whole, *whole};
        parts[0].size = parts[1].size = 4;
        parts[0].to += 4;
        parts[1].from += 4;
        parts[2].from += 8;
        parts[2].to += 8;
        parts[2].size -= 8;
        ((void (*)(Handle, uint64_t, uint64_t, uint32_t, const void *))next_function(commands, "vkCmdCopyBuffer"))(
            commands, from, to, 3, parts);
        return;
    }
    if (is_fault("copy-shift") && count == 1 && whole->size >= 16 && is_nth(&recorded)) {
        BufferCopy shifted = *whole;
        shifted.to += 4;
        shifted.size -= 4;
        ((void (*)(Handle, uint64_t, uint64_t, uint32_t, const void *))next_function(commands, "vkCmdCopyBuffer"))(
            commands, from, to, 1, &shifted);
        return;
    }
    if (is_fault("copy-hole") && count == 1 && whole->size > 2 * HOLE_BYTES && is_nth(&recorded)) {
        BufferCopy earlier_results = *whole, after = *whole;
        earlier_results.size = whole->size / 2 / HOLE_BYTES * HOLE_BYTES;
        uint64_t skipped = earlier_results.size + HOLE_BYTES;
        after.from += skipped;
        after.to += skipped;
        after.size = whole->size > skipped ? whole->size - skipped : 0;
        BufferCopy parts[2] = {earlier_results, after};
        ((void (*)(Handle, uint64_t, uint64_t, uint32_t, const void *))next_function(commands, "vkCmdCopyBuffer"))(
            commands, from, to, after.size ? 2 : 1, parts);
        return;
    }
    ((void (*)(Handle, uint64_t, uint64_t, uint32_t, const void *))next_function(commands, "vkCmdCopyBuffer"))(
        commands, from, to, count, regions);
    record_late_dispatch(commands);
}

static Result layer_vkQueueSubmit(Handle queue, uint32_t count, const SubmitInfo *submits, uint64_t fence) {
    static unsigned long submissions;
    Result result = inject_call_fault("vkQueueSubmit");
    if (result) return result;
    Result (*submit)(Handle, uint32_t, const SubmitInfo *, uint64_t) =
        (Result(*)(Handle, uint32_t, const SubmitInfo *, uint64_t))next_function(queue, "vkQueueSubmit");
    submissions++;
    last_queue = queue;
    if (is_fault("early-words") || is_fault("early-bit")) change_mapped_memory(submissions % fault_number() == 0);
    if (is_fault("running-words") || is_fault("doubled-words") || is_fault("rare-bits"))
        change_later(submissions % fault_number() == 0);
    if (is_fault("device-lost") && submissions >= fault_number()) return DEVICE_LOST;
    if (is_fault("lost-once") && submissions == fault_number()) return DEVICE_LOST;
    static struct { uint32_t count; Handle commands[8]; } earlier;
    if (is_fault("earlier-commands") && count == 1 && submits->command_count <= sizeof earlier.commands / sizeof(Handle)) {
        SubmitInfo is_stale = *submits;
        Handle commands[8];
        is_stale.commands = memcpy(commands, submits->commands, submits->command_count * sizeof(Handle));
        if (earlier.count && submissions % fault_number() == 0) {
            /* Commands that may still run cannot be submitted again. */
            result = ((Result(*)(Handle))next_function(queue, "vkQueueWaitIdle"))(queue);
            if (result) return result;
            is_stale.command_count = earlier.count;
            is_stale.commands = earlier.commands;
        }
        result = submit(queue, 1, &is_stale, fence);
        memcpy(earlier.commands, commands, submits->command_count * sizeof(Handle));
        earlier.count = submits->command_count;
        return result;
    }
    if (is_fault("early-fence")) {
        if (deferred.commands) {
            result = submit(deferred.queue, 1, &deferred.work, 0);
            free(deferred.commands);
            deferred.commands = NULL;
            if (result) return result;
        }
        int is_independent = count == 1 && fence && submits->wait_count == 0 && submits->signal_count == 0;
        if (is_independent && submissions % fault_number() == 0 && (deferred.commands = calloc(submits->command_count, sizeof(Handle)))) {
            memcpy(deferred.commands, submits->commands, submits->command_count * sizeof(Handle));
            deferred.queue = queue;
            deferred.work = *submits;
            deferred.work.next = NULL;
            deferred.work.commands = deferred.commands;
            return submit(queue, 0, NULL, fence);
        }
        return submit(queue, count, submits, fence);
    }
    if (is_fault("twice") && count == 1 && submits->wait_count == 0 && submits->signal_count == 0 && submissions % fault_number() == 0) {
        result = submit(queue, count, submits, 0);
        if (result == SUCCESS) result = ((Result(*)(Handle))next_function(queue, "vkQueueWaitIdle"))(queue);
        return result ? result : submit(queue, count, submits, fence);
    }
    if (!is_fault("empty-submission") || submissions % fault_number() != 0) return submit(queue, count, submits, fence);
    SubmitInfo *empty = calloc(count ? count : 1, sizeof *empty);
    if (!empty) return OUT_OF_HOST_MEMORY;
    for (uint32_t i = 0; i < count; i++) {
        empty[i] = submits[i];
        empty[i].command_count = 0;
    }
    result = submit(queue, count, empty, fence);
    free(empty);
    return result;
}

static Result layer_vkWaitForFences(Handle handle, uint32_t count, const uint64_t *fences, uint32_t all, uint64_t time) {
    static unsigned long all_waits;
    Result result = inject_call_fault("vkWaitForFences");
    if (result) return result;
    if (is_fault("no-wait") && is_nth(&all_waits)) return SUCCESS;
    result = ((Result(*)(Handle, uint32_t, const uint64_t *, uint32_t, uint64_t))next_function(handle, "vkWaitForFences"))(
        handle, count, fences, all, time);
    static unsigned long waits;
    if (result == SUCCESS && ++waits >= fault_number()) {
        if (is_fault("endless-wait")) return TIMEOUT;
        if (is_fault("garbage")) overwrite_mapped_memory(0x5eed1234u);
        if (is_fault("zeros")) overwrite_mapped_memory(0);
        if (is_fault("stuck-bit")) change_mapped_memory(1);
        if (is_fault("late-words") || is_fault("late-bit")) change_later(1);
    }
    static unsigned long drops;
    if (result == SUCCESS && is_fault("dropped-writes")) drop_small_writes(is_nth(&drops));
    if (result == SUCCESS && is_fault("one-way-map")) update_mapped_copies();
    if (result == SUCCESS && (is_fault("flipped-bits") || is_fault("swapped-words") || is_fault("stale-words"))) corrupt_results();
    return result;
}

static Result layer_vkCreateInstance(const void *info, const void *allocator, Handle *created) {
    Result result = inject_call_fault("vkCreateInstance");
    if (result == SUCCESS) result = create_instance(info, allocator, created);
    if (result == SUCCESS) {
        LOAD_INSTANCE_FUNCTION(next_enumerate_devices, "vkEnumeratePhysicalDevices");
        LOAD_INSTANCE_FUNCTION(next_memory_properties, "vkGetPhysicalDeviceMemoryProperties");
        LOAD_INSTANCE_FUNCTION(next_properties, "vkGetPhysicalDeviceProperties");
        LOAD_INSTANCE_FUNCTION(next_properties2, "vkGetPhysicalDeviceProperties2");
        LOAD_INSTANCE_FUNCTION(next_queue_families, "vkGetPhysicalDeviceQueueFamilyProperties");
        LOAD_INSTANCE_FUNCTION(next_queue_families2, "vkGetPhysicalDeviceQueueFamilyProperties2");
    }
    return result;
}

static Result layer_vkCreateDevice(Handle physical, const DeviceInfo *info, const void *allocator, Handle *created) {
    Result result = inject_call_fault("vkCreateDevice");
    return result ? result : create_device(physical, info, allocator, created);
}

static Function find_layer_function(const char *name) {
#define LAYER_CALL(call, parameters, arguments) LAYER_FUNCTION(call)
    COMMON_LAYER_FUNCTIONS
    CALLS(LAYER_CALL)
    LAYER_FUNCTION(vkAllocateMemory)
    LAYER_FUNCTION(vkBindBufferMemory)
    LAYER_FUNCTION(vkGetPhysicalDeviceQueueFamilyProperties)
    LAYER_FUNCTION(vkGetPhysicalDeviceQueueFamilyProperties2)
    LAYER_FUNCTION(vkFreeMemory)
    LAYER_FUNCTION(vkMapMemory)
    LAYER_FUNCTION(vkCreateShaderModule)
    LAYER_FUNCTION(vkCmdBindPipeline)
    LAYER_FUNCTION(vkCmdBindDescriptorSets)
    LAYER_FUNCTION(vkCmdPipelineBarrier)
    LAYER_FUNCTION(vkUpdateDescriptorSets)
    LAYER_FUNCTION(vkCreateImage)
    LAYER_FUNCTION(vkCreateImageView)
    LAYER_FUNCTION(vkCreateBufferView)
    LAYER_FUNCTION(vkCmdCopyBufferToImage)
    LAYER_FUNCTION(vkCmdCopyImageToBuffer)
    LAYER_FUNCTION(vkGetBufferMemoryRequirements)
    LAYER_FUNCTION(vkGetQueryPoolResults)
    LAYER_FUNCTION(vkCmdDispatch)
    LAYER_FUNCTION(vkCmdDraw)
    LAYER_FUNCTION(vkCmdPushConstants)
    LAYER_FUNCTION(vkCmdFillBuffer)
    LAYER_FUNCTION(vkCmdCopyBuffer)
    LAYER_FUNCTION(vkQueueSubmit)
    LAYER_FUNCTION(vkWaitForFences)
    LAYER_FUNCTION(vkEnumeratePhysicalDevices)
    LAYER_FUNCTION(vkGetPhysicalDeviceMemoryProperties)
    LAYER_FUNCTION(vkGetPhysicalDeviceProperties)
    LAYER_FUNCTION(vkGetPhysicalDeviceProperties2)
    return NULL;
}
