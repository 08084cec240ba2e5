/* The chain of layers: the parts of the loader's ABI that a layer reads, and its entry points. A layer includes this file once and defines
 * the functions that are only declared here. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int32_t Result;
enum { SUCCESS = 0, TIMEOUT = 2, OUT_OF_HOST_MEMORY = -1, OUT_OF_DEVICE_MEMORY = -2, INITIALIZATION_FAILED = -3, DEVICE_LOST = -4 };
enum { LOADER_INSTANCE_CREATE_INFO = 47, LOADER_DEVICE_CREATE_INFO = 48 };

/* A dispatchable handle points to a pointer that identifies its instance or device. */
typedef void *Handle;
typedef void (*Function)(void);
typedef Function (*GetProcAddr)(Handle, const char *);

typedef struct Header {
    int32_t type;
    const struct Header *next;
} Header;

typedef struct InstanceLink {
    struct InstanceLink *next;
    GetProcAddr get_instance_proc_addr, get_physical_device_proc_addr;
} InstanceLink;

typedef struct DeviceLink {
    struct DeviceLink *next;
    GetProcAddr get_instance_proc_addr, get_device_proc_addr;
} DeviceLink;

typedef struct LayerInfo {
    int32_t type;
    const void *next;
    int32_t function; /* 0: a link */
    void *link;
} LayerInfo;

typedef struct Negotiation {
    int32_t type;
    void *next;
    uint32_t version;
    GetProcAddr get_instance_proc_addr, get_device_proc_addr, get_physical_device_proc_addr;
} Negotiation;

/* The beginning of VkDeviceCreateInfo. */
typedef struct DeviceInfo {
    int32_t type;
    const void *next;
    uint32_t flags, queue_info_count;
    const void *queue_infos;
    uint32_t layer_count;
    const char *const *layers;
    uint32_t extension_count;
    const char *const *extensions;
    const void *features;
} DeviceInfo;

static LayerInfo *find_layer_link(const void *info, int32_t type) {
    for (const Header *at = ((const Header *)info)->next; at; at = at->next)
        if (at->type == type && ((const LayerInfo *)at)->function == 0) return (LayerInfo *)at;
    return NULL;
}

/* The layers and drivers below. Objects of one instance or device share a key, the first word of their handles. */

enum { MAX_DEVICES = 256 };
typedef struct DeviceState {
    void *key; /* NULL in a free entry. */
    GetProcAddr get;
    Handle device, physical;
    unsigned generation;
    const struct InstanceState *instance;
} DeviceState;
typedef struct InstanceState {
    void *key;
    GetProcAddr get;
    Handle instance;
    void (*get_memory_properties)(Handle, void *);
    void (*get_properties2)(Handle, void *);
    void (*destroy)(Handle, const void *);
} InstanceState;
static DeviceState devices[MAX_DEVICES];
static InstanceState instances[MAX_DEVICES];
static unsigned last_generation;

/* Returns the index of a device for a handle of the device, a queue or a command buffer. A layer above may use handles that the loader has
 * not seen: they are of the last device. */
static unsigned device_index(Handle handle) {
    unsigned last = 0;
    for (unsigned i = 0; i < MAX_DEVICES; i++) {
        if (devices[i].key == *(void **)handle) return i;
        if (devices[i].key && devices[i].generation > devices[last].generation) last = i;
    }
    return last;
}

static inline DeviceState *device_state(Handle handle) { return &devices[device_index(handle)]; }

static InstanceState *find_instance(void *key) {
    for (unsigned i = 0; i < MAX_DEVICES; i++)
        if (instances[i].key == key) return &instances[i];
    return NULL;
}

static Function next_function(Handle handle, const char *name) {
    const DeviceState *state = device_state(handle);
    return state->get(state->device, name);
}

/* The next function of each device at one call. A generation is never reused, so an entry of a destroyed device is not valid. */
typedef struct FunctionCache {
    Function functions[MAX_DEVICES];
    unsigned generations[MAX_DEVICES];
} FunctionCache;

static inline Function cached_function(FunctionCache *cache, Handle handle, const char *name) {
    unsigned index = device_index(handle), generation = devices[index].generation;
    if (__atomic_load_n(&cache->generations[index], __ATOMIC_ACQUIRE) != generation) {
        cache->functions[index] = next_function(handle, name);
        __atomic_store_n(&cache->generations[index], generation, __ATOMIC_RELEASE);
    }
    return cache->functions[index];
}

#define CALL_NEXT(handle, result, name, parameters) \
    ((result(*) parameters)(__extension__({ static FunctionCache cache; cached_function(&cache, handle, #name); })))

static Result create_instance(const void *info, const void *allocator, Handle *created) {
    LayerInfo *chain = find_layer_link(info, LOADER_INSTANCE_CREATE_INFO);
    if (!chain) return INITIALIZATION_FAILED;
    InstanceLink *link = chain->link;
    chain->link = link->next;
    GetProcAddr get = link->get_instance_proc_addr;
    Result result = ((Result(*)(const void *, const void *, Handle *))get(NULL, "vkCreateInstance"))(info, allocator, created);
    if (result != SUCCESS) return result;
    InstanceState *state = find_instance(*(void **)*created);
    if (!state) state = find_instance(NULL);
    if (!state) return OUT_OF_HOST_MEMORY;
    *state = (InstanceState){ *(void **)*created, get, *created, NULL, NULL, NULL };
    /* Looked up while the instance is created: later the loader returns the functions of the topmost layer. */
    *(Function *)&state->get_memory_properties = get(*created, "vkGetPhysicalDeviceMemoryProperties");
    *(Function *)&state->get_properties2 = get(*created, "vkGetPhysicalDeviceProperties2");
    *(Function *)&state->destroy = get(*created, "vkDestroyInstance");
    return SUCCESS;
}

/* Look up functions of the instance `*created` while it is created: later the loader returns those of the topmost layer. */
#define LOAD_INSTANCE_FUNCTION(function, name) \
    *(Function *)&function = find_instance(*(void **)*created)->get(*created, name)

static Result create_device(Handle physical, const DeviceInfo *info, const void *allocator, Handle *created) {
    LayerInfo *chain = find_layer_link(info, LOADER_DEVICE_CREATE_INFO);
    const InstanceState *instance = find_instance(*(void **)physical);
    if (!chain || !instance) return INITIALIZATION_FAILED;
    DeviceLink *link = chain->link;
    chain->link = link->next;
    Result result = ((Result(*)(Handle, const DeviceInfo *, const void *, Handle *))link->get_instance_proc_addr(
        instance->instance, "vkCreateDevice"))(physical, info, allocator, created);
    if (result != SUCCESS) return result;
    unsigned index = 0;
    while (index < MAX_DEVICES && devices[index].key && devices[index].key != *(void **)*created) index++;
    if (index == MAX_DEVICES) return OUT_OF_HOST_MEMORY;
    DeviceState *state = &devices[index];
    *state = (DeviceState){ *(void **)*created, link->get_device_proc_addr, *created, physical, ++last_generation, instance };
    return SUCCESS;
}

/* Entry points for the loader. */

/* Returns the layer's function of this name, or NULL. */
static Function find_layer_function(const char *name);

static Function layer_vkGetDeviceProcAddr(Handle device, const char *name) {
    Function found = find_layer_function(name);
    Function next = next_function(device, name);
#ifdef LAYER_PROVIDES_FUNCTIONS
    return found ? found : next;
#else
    /* If the driver lacks the function, so does the layer. */
    return found && next ? found : next;
#endif
}

static Function layer_vkGetInstanceProcAddr(Handle instance, const char *name) {
    Function found = find_layer_function(name);
    const InstanceState *state = instance ? find_instance(*(void **)instance) : NULL;
    Function next = state ? state->get(instance, name) : NULL;
    return found && (next || !state) ? found : next;
}

static void layer_vkDestroyInstance(Handle instance, const void *allocator) {
    if (!instance) return;
    InstanceState *state = find_instance(*(void **)instance);
    state->key = NULL;
    state->destroy(instance, allocator);
}

/* An entry of `find_layer_function`. */
#define LAYER_FUNCTION(call) \
    if (strcmp(name, #call) == 0) return (Function)layer_##call;
/* The entries that every layer has. */
#define COMMON_LAYER_FUNCTIONS LAYER_FUNCTION(vkGetDeviceProcAddr) LAYER_FUNCTION(vkGetInstanceProcAddr) LAYER_FUNCTION(vkCreateInstance) \
    LAYER_FUNCTION(vkDestroyInstance) LAYER_FUNCTION(vkCreateDevice)

__attribute__((visibility("default"))) Result vkNegotiateLoaderLayerInterfaceVersion(Negotiation *interface) {
    if (interface->version < 2) return INITIALIZATION_FAILED;
    interface->version = 2;
    interface->get_instance_proc_addr = layer_vkGetInstanceProcAddr;
    interface->get_device_proc_addr = layer_vkGetDeviceProcAddr;
    interface->get_physical_device_proc_addr = NULL;
    return SUCCESS;
}
