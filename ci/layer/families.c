/* A Vulkan layer that presents several queue families on a driver with one queue. The validation layers above it check the calls
 * that the program makes on such devices.
 *
 * The driver's first queue family appears twice, the second time without graphics, each with two queues. All map to one queue of the
 * driver, so submissions execute in order and missing synchronization has no effect here. Missing halves of ownership transfers are
 * detected: if LITMUS_FAMILIES_LOG names a file, the layer appends a line for each half, "release" or "acquire", with the process,
 * the buffer and the families.
 *
 * A test builds this file with `cc`. It is not shipped. It needs no Vulkan headers: layer.h declares the structures that it reads. */

#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "layer.h"

enum { GRAPHICS = 1 };
enum { FAMILIES = 2, QUEUES = 2 };

typedef struct Family {
    uint32_t flags, count, timestamp_bits, granularity[3];
} Family;

typedef struct Family2 {
    int32_t type;
    void *next;
    Family family;
} Family2;

typedef struct QueueInfo {
    int32_t type;
    const void *next;
    uint32_t flags, family, count;
    const float *priorities;
} QueueInfo;

typedef struct QueueInfo2 {
    int32_t type;
    const void *next;
    uint32_t flags, family, index;
} QueueInfo2;

typedef struct PoolInfo {
    int32_t type;
    const void *next;
    uint32_t flags, family;
} PoolInfo;

/* VkCommandBufferAllocateInfo. */
typedef struct AllocateInfo {
    int32_t type;
    const void *next;
    uint64_t pool;
    uint32_t level, count;
} AllocateInfo;

/* VkBufferMemoryBarrier. */
typedef struct BufferBarrier {
    int32_t type;
    const void *next;
    uint32_t source_access, destination_access, from, to;
    uint64_t buffer, offset, size;
} BufferBarrier;

/* A queue handle of the program. The loader stores its pointer in the first field. */
typedef struct Queue {
    void *loader;
    Handle own;
} Queue;

static void (*families_of)(Handle, uint32_t *, Family *);
/* State of each device. */
static Queue queues[DEVICES][FAMILIES][QUEUES];

/* Queue families. */

static void layer_vkGetPhysicalDeviceQueueFamilyProperties(Handle physical, uint32_t *count, Family *found) {
    Family own[64];
    uint32_t all = 64;
    families_of(physical, &all, own);
    if (!found) {
        *count = FAMILIES;
        return;
    }
    if (*count > FAMILIES) *count = FAMILIES;
    for (uint32_t i = 0; i < *count; i++) {
        found[i] = own[0];
        found[i].count = QUEUES;
        if (i > 0) found[i].flags &= ~(uint32_t)GRAPHICS;
    }
}

static void layer_vkGetPhysicalDeviceQueueFamilyProperties2(Handle physical, uint32_t *count, Family2 *found) {
    Family all[FAMILIES];
    layer_vkGetPhysicalDeviceQueueFamilyProperties(physical, count, found ? all : NULL);
    for (uint32_t i = 0; found && i < *count; i++) found[i].family = all[i];
}

static Result layer_vkCreateInstance(const void *info, const void *allocator, Handle *made) {
    Result result = make_instance(info, allocator, made);
    if (result == SUCCESS) OF_INSTANCE(families_of, "vkGetPhysicalDeviceQueueFamilyProperties");
    return result;
}

static Result layer_vkCreateDevice(Handle physical, const DeviceInfo *info, const void *allocator, Handle *made) {
    static const float priority = 1;
    QueueInfo queue = { ((const Header *)info->queue_infos)->type, NULL, 0, 0, 1, &priority };
    DeviceInfo one = *info;
    one.queue_info_count = 1;
    one.queue_infos = &queue;
    Result result = make_device(physical, &one, allocator, made);
    if (result != SUCCESS) return result;
    Handle own = NULL;
    ((void (*)(Handle, uint32_t, uint32_t, Handle *))below(*made, "vkGetDeviceQueue"))(*made, 0, 0, &own);
    for (unsigned family = 0; family < FAMILIES; family++)
        for (unsigned index = 0; index < QUEUES; index++)
            queues[place_of(*made)][family][index] = (Queue){ *(void **)*made, own };
    return SUCCESS;
}

static void layer_vkGetDeviceQueue(Handle device, uint32_t family, uint32_t index, Handle *found) {
    *found = family < FAMILIES && index < QUEUES ? &queues[place_of(device)][family][index] : NULL;
}

static void layer_vkGetDeviceQueue2(Handle device, const QueueInfo2 *info, Handle *found) {
    layer_vkGetDeviceQueue(device, info->family, info->index, found);
}

/* Transfers of ownership. */

enum { NO_FAMILY = -1, KEPT = 4096 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* The queue family of a pool or command buffer. The latest object with a handle counts. */
static struct { uint64_t handle; uint32_t family; } owners[KEPT];
static unsigned owner_count;

static int64_t family_of(uint64_t handle) {
    for (unsigned i = owner_count; i-- > 0;)
        if (owners[i].handle == handle) return owners[i].family;
    return NO_FAMILY;
}

static void belongs(uint64_t handle, uint32_t family) {
    for (unsigned i = 0; i < owner_count; i++)
        if (owners[i].handle == handle) {
            owners[i].family = family;
            return;
        }
    if (owner_count == KEPT) abort();
    owners[owner_count].handle = handle;
    owners[owner_count++].family = family;
}

static void transfer(int64_t family, const BufferBarrier *barrier) {
    const char *path = getenv("LITMUS_FAMILIES_LOG");
    FILE *log = path ? fopen(path, "a") : NULL;
    if (!log) return;
    const char *half = family == barrier->from ? "release" : family == barrier->to ? "acquire" : "elsewhere";
    fprintf(log, "%s %ld %llx %u %u\n", half, (long)getpid(), (unsigned long long)barrier->buffer, barrier->from, barrier->to);
    fclose(log);
}

static void layer_vkCmdPipelineBarrier(Handle commands, uint32_t source, uint32_t destination, uint32_t flags,
                                       uint32_t memory_count, const void *memory, uint32_t buffer_count,
                                       const BufferBarrier *buffers, uint32_t image_count, const void *images) {
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < buffer_count; i++)
        if (buffers[i].from != buffers[i].to) transfer(family_of((uintptr_t)commands), &buffers[i]);
    pthread_mutex_unlock(&lock);
    ((void (*)(Handle, uint32_t, uint32_t, uint32_t, uint32_t, const void *, uint32_t, const BufferBarrier *, uint32_t,
               const void *))below(commands, "vkCmdPipelineBarrier"))(
        commands, source, destination, flags, memory_count, memory, buffer_count, buffers, image_count, images);
}

/* Calls with a family or a queue as parameter. */

static Result layer_vkCreateCommandPool(Handle device, const PoolInfo *info, const void *allocator, uint64_t *made) {
    PoolInfo own = *info;
    own.family = 0;
    Result result = ((Result(*)(Handle, const PoolInfo *, const void *, uint64_t *))below(
        device, "vkCreateCommandPool"))(device, &own, allocator, made);
    pthread_mutex_lock(&lock);
    if (result == SUCCESS) belongs(*made, info->family);
    pthread_mutex_unlock(&lock);
    return result;
}

static Result layer_vkAllocateCommandBuffers(Handle device, const AllocateInfo *info, Handle *made) {
    Result result = ((Result(*)(Handle, const AllocateInfo *, Handle *))below(device, "vkAllocateCommandBuffers"))(
        device, info, made);
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; result == SUCCESS && i < info->count; i++)
        belongs((uintptr_t)made[i], (uint32_t)family_of(info->pool));
    pthread_mutex_unlock(&lock);
    return result;
}

#define SUBMIT(name) \
    static Result layer_##name(Handle queue, uint32_t count, const void *submits, uint64_t fence) { \
        return ((Result(*)(Handle, uint32_t, const void *, uint64_t))below(queue, #name))( \
            ((Queue *)queue)->own, count, submits, fence); \
    }
SUBMIT(vkQueueSubmit)
SUBMIT(vkQueueSubmit2)
SUBMIT(vkQueueSubmit2KHR)

static Result layer_vkQueueWaitIdle(Handle queue) {
    return ((Result(*)(Handle))below(queue, "vkQueueWaitIdle"))(((Queue *)queue)->own);
}

static Function own(const char *name) {
    OWN_ALWAYS
    OWN(vkGetPhysicalDeviceQueueFamilyProperties)
    OWN(vkGetPhysicalDeviceQueueFamilyProperties2)
    OWN(vkGetDeviceQueue)
    OWN(vkGetDeviceQueue2)
    OWN(vkCreateCommandPool)
    OWN(vkAllocateCommandBuffers)
    OWN(vkCmdPipelineBarrier)
    OWN(vkQueueSubmit)
    OWN(vkQueueSubmit2)
    OWN(vkQueueSubmit2KHR)
    OWN(vkQueueWaitIdle)
    if (strcmp(name, "vkGetPhysicalDeviceQueueFamilyProperties2KHR") == 0)
        return (Function)layer_vkGetPhysicalDeviceQueueFamilyProperties2;
    return NULL;
}
