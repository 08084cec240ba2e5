/* A Vulkan layer that gives a driver of one queue several queue families, for tests: what devices with several are given can be
 * looked at by the validation layers above it, and runs.
 *
 * The first queue family is there twice, the second time without graphics, each with two queues. All of them are one queue of the
 * driver, so that what is submitted runs in the order in which it was: whether memory is handed over in time cannot be seen here.
 * Whether both halves of each transfer of ownership are recorded can: where LITMUS_FAMILIES_LOG names a file, a line is added for each
 * half, "release" or "acquire", with the process, the buffer and the families.
 *
 * A test builds this with `cc`. It is not shipped. Nothing here needs Vulkan's headers: the few structures that are looked into stand
 * in abi.h. */

#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi.h"

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

/* The beginning of VkDeviceCreateInfo. */
typedef struct DeviceInfo {
    int32_t type;
    const void *next;
    uint32_t flags, queue_info_count;
    const QueueInfo *queue_infos;
    uint32_t layer_count;
    const char *const *layers;
    uint32_t extension_count;
    const char *const *extensions;
    const void *features;
} DeviceInfo;

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

/* A queue as the program has it: the loader keeps its own pointer in front. */
typedef struct Queue {
    void *loader;
    Handle own;
} Queue;

/* The layers and drivers below. */

static GetProcAddr next_instance;
static Handle last_instance;
/* Looked up when the instance is made: later the loader answers with the topmost layer. */
static void (*families_of)(Handle, uint32_t *, Family *);
static struct { void *key; GetProcAddr get; Handle device; Queue queues[FAMILIES][QUEUES]; } devices[64];
static unsigned device_count;

static unsigned place_of(Handle handle) {
    for (unsigned i = 0; i < device_count; i++)
        if (devices[i].key == *(void **)handle) return i;
    return 0;
}

static Function below(Handle handle, const char *name) {
    unsigned place = place_of(handle);
    return devices[place].get(devices[place].device, name);
}

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
    LayerInfo *chain = link_of(info, LOADER_INSTANCE_CREATE_INFO);
    if (!chain) return INITIALIZATION_FAILED;
    InstanceLink *link = chain->link;
    chain->link = link->next;
    next_instance = link->get_instance;
    Result result = ((Result(*)(const void *, const void *, Handle *))next_instance(NULL, "vkCreateInstance"))(
        info, allocator, made);
    if (result == SUCCESS) {
        last_instance = *made;
        families_of = (void (*)(Handle, uint32_t *, Family *))next_instance(
            *made, "vkGetPhysicalDeviceQueueFamilyProperties");
    }
    return result;
}

static Result layer_vkCreateDevice(Handle physical, const DeviceInfo *info, const void *allocator, Handle *made) {
    LayerInfo *chain = link_of(info, LOADER_DEVICE_CREATE_INFO);
    if (!chain || device_count == sizeof devices / sizeof *devices) return INITIALIZATION_FAILED;
    DeviceLink *link = chain->link;
    chain->link = link->next;
    static const float priority = 1;
    QueueInfo queue = { info->queue_infos->type, NULL, 0, 0, 1, &priority };
    DeviceInfo one = *info;
    one.queue_info_count = 1;
    one.queue_infos = &queue;
    Result result = ((Result(*)(Handle, const DeviceInfo *, const void *, Handle *))link->get_instance(
        last_instance, "vkCreateDevice"))(physical, &one, allocator, made);
    if (result != SUCCESS) return result;
    unsigned place = device_count++;
    devices[place].key = *(void **)*made;
    devices[place].get = link->get_device;
    devices[place].device = *made;
    Handle own = NULL;
    ((void (*)(Handle, uint32_t, uint32_t, Handle *))link->get_device(*made, "vkGetDeviceQueue"))(*made, 0, 0, &own);
    for (unsigned family = 0; family < FAMILIES; family++)
        for (unsigned index = 0; index < QUEUES; index++)
            devices[place].queues[family][index] = (Queue){ devices[place].key, own };
    return SUCCESS;
}

static void layer_vkGetDeviceQueue(Handle device, uint32_t family, uint32_t index, Handle *found) {
    *found = family < FAMILIES && index < QUEUES ? &devices[place_of(device)].queues[family][index] : NULL;
}

static void layer_vkGetDeviceQueue2(Handle device, const QueueInfo2 *info, Handle *found) {
    layer_vkGetDeviceQueue(device, info->family, info->index, found);
}

/* Transfers of ownership. */

enum { NO_FAMILY = -1, KEPT = 4096 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* By pool or command buffer, the family. The last that was made with a handle counts. */
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

/* What names a family or a queue. */

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

/* What the loader asks for. */

static Function own(const char *name);

static Function layer_get_device(Handle device, const char *name) {
    Function found = own(name);
    Function next = below(device, name);
    /* What the driver does not have is not there. */
    return found && next ? found : next;
}

static Function layer_get_instance(Handle instance, const char *name) {
    Function found = own(name);
    if (found) return found;
    return next_instance ? next_instance(instance, name) : NULL;
}

static Function own(const char *name) {
#define FIND(call) \
    if (strcmp(name, #call) == 0) return (Function)layer_##call;
    FIND(vkGetPhysicalDeviceQueueFamilyProperties)
    FIND(vkGetPhysicalDeviceQueueFamilyProperties2)
    FIND(vkCreateInstance)
    FIND(vkCreateDevice)
    FIND(vkGetDeviceQueue)
    FIND(vkGetDeviceQueue2)
    FIND(vkCreateCommandPool)
    FIND(vkAllocateCommandBuffers)
    FIND(vkCmdPipelineBarrier)
    FIND(vkQueueSubmit)
    FIND(vkQueueSubmit2)
    FIND(vkQueueSubmit2KHR)
    FIND(vkQueueWaitIdle)
    if (strcmp(name, "vkGetPhysicalDeviceQueueFamilyProperties2KHR") == 0)
        return (Function)layer_vkGetPhysicalDeviceQueueFamilyProperties2;
    if (strcmp(name, "vkGetDeviceProcAddr") == 0) return (Function)layer_get_device;
    if (strcmp(name, "vkGetInstanceProcAddr") == 0) return (Function)layer_get_instance;
    return NULL;
}

__attribute__((visibility("default"))) Result vkNegotiateLoaderLayerInterfaceVersion(Negotiation *asked) {
    if (asked->version < 2) return INITIALIZATION_FAILED;
    asked->version = 2;
    asked->get_instance = layer_get_instance;
    asked->get_device = layer_get_device;
    asked->get_physical_device = NULL;
    return SUCCESS;
}
