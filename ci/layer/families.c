/* A Vulkan layer that presents several queue families on a driver with one queue. The validation layers above it check the calls
 * that the program makes on such devices.
 *
 * The driver's first queue family appears twice, the second time without graphics, each with two queues. All map to one queue of the
 * driver, so submissions execute in order and missing synchronization has no effect here. Missing halves of ownership transfers are
 * detected: if LITMUS_FAMILIES_LOG names a file, the layer appends a line for each half, "release" or "acquire", with the process,
 * the buffer and the families.
 *
 * A test builds this file with `cc`. It is not shipped. It needs no Vulkan headers: chain.h declares the structures that it reads. */

#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "../../harness/record/layer/chain.h"

enum { GRAPHICS = 1 };
enum { FAMILY_COUNT = 2, QUEUE_COUNT = 2 };

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

typedef struct CommandPoolInfo {
    int32_t type;
    const void *next;
    uint32_t flags, family;
} CommandPoolInfo;

/* VkCommandBufferAllocateInfo. */
typedef struct CommandBufferAllocateInfo {
    int32_t type;
    const void *next;
    uint64_t pool;
    uint32_t level, count;
} CommandBufferAllocateInfo;

/* VkBufferMemoryBarrier. */
typedef struct BufferMemoryBarrier {
    int32_t type;
    const void *next;
    uint32_t source_access, destination_access, from, to;
    uint64_t buffer, offset, size;
} BufferMemoryBarrier;

/* A queue handle of the program. The loader stores its pointer in the first field. */
typedef struct Queue {
    void *loader;
    Handle driver_queue;
} Queue;

static void (*get_queue_families)(Handle, uint32_t *, Family *);
/* State of each device. */
static Queue queues[MAX_DEVICES][FAMILY_COUNT][QUEUE_COUNT];

/* Queue families. */

static void layer_vkGetPhysicalDeviceQueueFamilyProperties(Handle physical, uint32_t *count, Family *found) {
    Family driver_families[64];
    uint32_t all = 64;
    get_queue_families(physical, &all, driver_families);
    if (!found) {
        *count = FAMILY_COUNT;
        return;
    }
    if (*count > FAMILY_COUNT) *count = FAMILY_COUNT;
    for (uint32_t i = 0; i < *count; i++) {
        found[i] = driver_families[0];
        found[i].count = QUEUE_COUNT;
        if (i > 0) found[i].flags &= ~(uint32_t)GRAPHICS;
    }
}

static void layer_vkGetPhysicalDeviceQueueFamilyProperties2(Handle physical, uint32_t *count, Family2 *found) {
    Family all[FAMILY_COUNT];
    layer_vkGetPhysicalDeviceQueueFamilyProperties(physical, count, found ? all : NULL);
    for (uint32_t i = 0; found && i < *count; i++) found[i].family = all[i];
}

static Result layer_vkCreateInstance(const void *info, const void *allocator, Handle *created) {
    Result result = create_instance(info, allocator, created);
    if (result == SUCCESS) LOAD_INSTANCE_FUNCTION(get_queue_families, "vkGetPhysicalDeviceQueueFamilyProperties");
    return result;
}

static Result layer_vkCreateDevice(Handle physical, const DeviceInfo *info, const void *allocator, Handle *created) {
    static const float priority = 1;
    QueueInfo queue = { ((const Header *)info->queue_infos)->type, NULL, 0, 0, 1, &priority };
    DeviceInfo single_queue_info = *info;
    single_queue_info.queue_info_count = 1;
    single_queue_info.queue_infos = &queue;
    Result result = create_device(physical, &single_queue_info, allocator, created);
    if (result != SUCCESS) return result;
    Handle driver_queue = NULL;
    ((void (*)(Handle, uint32_t, uint32_t, Handle *))next_function(*created, "vkGetDeviceQueue"))(*created, 0, 0, &driver_queue);
    for (unsigned family = 0; family < FAMILY_COUNT; family++)
        for (unsigned index = 0; index < QUEUE_COUNT; index++)
            queues[device_index(*created)][family][index] = (Queue){ *(void **)*created, driver_queue };
    return SUCCESS;
}

static void layer_vkGetDeviceQueue(Handle device, uint32_t family, uint32_t index, Handle *found) {
    *found = family < FAMILY_COUNT && index < QUEUE_COUNT ? &queues[device_index(device)][family][index] : NULL;
}

static void layer_vkGetDeviceQueue2(Handle device, const QueueInfo2 *info, Handle *found) {
    layer_vkGetDeviceQueue(device, info->family, info->index, found);
}

/* Transfers of ownership. */

enum { NO_FAMILY = -1, MAX_OWNERS = 4096 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* The queue family of a pool or command buffer. The latest object with a handle counts. */
static struct { uint64_t handle; uint32_t family; } owners[MAX_OWNERS];
static unsigned owner_count;

static int64_t family_of(uint64_t handle) {
    for (unsigned i = owner_count; i-- > 0;)
        if (owners[i].handle == handle) return owners[i].family;
    return NO_FAMILY;
}

static void set_family(uint64_t handle, uint32_t family) {
    for (unsigned i = 0; i < owner_count; i++)
        if (owners[i].handle == handle) {
            owners[i].family = family;
            return;
        }
    if (owner_count == MAX_OWNERS) abort();
    owners[owner_count].handle = handle;
    owners[owner_count++].family = family;
}

static void log_ownership_transfer(int64_t family, const BufferMemoryBarrier *barrier) {
    const char *path = getenv("LITMUS_FAMILIES_LOG");
    FILE *log = path ? fopen(path, "a") : NULL;
    if (!log) return;
    const char *half = family == barrier->from ? "release" : family == barrier->to ? "acquire" : "elsewhere";
    fprintf(log, "%s %ld %llx %u %u\n", half, (long)getpid(), (unsigned long long)barrier->buffer, barrier->from, barrier->to);
    fclose(log);
}

static void layer_vkCmdPipelineBarrier(Handle commands, uint32_t source, uint32_t destination, uint32_t flags,
                                       uint32_t memory_count, const void *memory, uint32_t buffer_count,
                                       const BufferMemoryBarrier *buffers, uint32_t image_count, const void *images) {
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < buffer_count; i++)
        if (buffers[i].from != buffers[i].to) log_ownership_transfer(family_of((uintptr_t)commands), &buffers[i]);
    pthread_mutex_unlock(&lock);
    ((void (*)(Handle, uint32_t, uint32_t, uint32_t, uint32_t, const void *, uint32_t, const BufferMemoryBarrier *, uint32_t,
               const void *))next_function(commands, "vkCmdPipelineBarrier"))(
        commands, source, destination, flags, memory_count, memory, buffer_count, buffers, image_count, images);
}

/* Calls with a family or a queue as parameter. */

static Result layer_vkCreateCommandPool(Handle device, const CommandPoolInfo *info, const void *allocator, uint64_t *created) {
    CommandPoolInfo driver_info = *info;
    driver_info.family = 0;
    Result result = ((Result(*)(Handle, const CommandPoolInfo *, const void *, uint64_t *))next_function(
        device, "vkCreateCommandPool"))(device, &driver_info, allocator, created);
    pthread_mutex_lock(&lock);
    if (result == SUCCESS) set_family(*created, info->family);
    pthread_mutex_unlock(&lock);
    return result;
}

static Result layer_vkAllocateCommandBuffers(Handle device, const CommandBufferAllocateInfo *info, Handle *created) {
    Result result = ((Result(*)(Handle, const CommandBufferAllocateInfo *, Handle *))next_function(device, "vkAllocateCommandBuffers"))(
        device, info, created);
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; result == SUCCESS && i < info->count; i++)
        set_family((uintptr_t)created[i], (uint32_t)family_of(info->pool));
    pthread_mutex_unlock(&lock);
    return result;
}

#define SUBMIT(name) \
    static Result layer_##name(Handle queue, uint32_t count, const void *submits, uint64_t fence) { \
        return ((Result(*)(Handle, uint32_t, const void *, uint64_t))next_function(queue, #name))( \
            ((Queue *)queue)->driver_queue, count, submits, fence); \
    }
SUBMIT(vkQueueSubmit)
SUBMIT(vkQueueSubmit2)
SUBMIT(vkQueueSubmit2KHR)

static Result layer_vkQueueWaitIdle(Handle queue) {
    return ((Result(*)(Handle))next_function(queue, "vkQueueWaitIdle"))(((Queue *)queue)->driver_queue);
}

static Function find_layer_function(const char *name) {
    COMMON_LAYER_FUNCTIONS
    LAYER_FUNCTION(vkGetPhysicalDeviceQueueFamilyProperties)
    LAYER_FUNCTION(vkGetPhysicalDeviceQueueFamilyProperties2)
    LAYER_FUNCTION(vkGetDeviceQueue)
    LAYER_FUNCTION(vkGetDeviceQueue2)
    LAYER_FUNCTION(vkCreateCommandPool)
    LAYER_FUNCTION(vkAllocateCommandBuffers)
    LAYER_FUNCTION(vkCmdPipelineBarrier)
    LAYER_FUNCTION(vkQueueSubmit)
    LAYER_FUNCTION(vkQueueSubmit2)
    LAYER_FUNCTION(vkQueueSubmit2KHR)
    LAYER_FUNCTION(vkQueueWaitIdle)
    if (strcmp(name, "vkGetPhysicalDeviceQueueFamilyProperties2KHR") == 0)
        return (Function)layer_vkGetPhysicalDeviceQueueFamilyProperties2;
    return NULL;
}
