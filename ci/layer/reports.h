/* Faults of the properties that a driver reports: part of fault.c. */

typedef struct MemoryProperties {
    uint32_t type_count;
    struct { uint32_t flags, heap; } types[32];
    uint32_t heap_count;
    struct { uint64_t size; uint32_t flags; } heaps[16];
} MemoryProperties;
enum { HOST_VISIBLE = 2, ALL_FLAGS = 15 };

/* Bytes before the limits in VkPhysicalDeviceProperties, bytes of these, and bytes before both in the newer structure. */
enum { SUBGROUP_PROPERTIES = 1000094000, PROPERTIES_1_1 = 50 };
enum { LIMITS_OFFSET = 296, LIMITS_BYTES = 504, PROPERTIES_OFFSET = 16 };
/* Bytes before the device name, and bytes of it. */
enum { NAME_OFFSET = 20, NAME_BYTES = 256 };

static Result (*next_enumerate_devices)(Handle, uint32_t *, Handle *);
static void (*next_memory_properties)(Handle, MemoryProperties *);
static void (*next_properties)(Handle, char *);
static void (*next_properties2)(Handle, char *);
static void (*next_queue_families)(Handle, uint32_t *, void *);
static void (*next_queue_families2)(Handle, uint32_t *, void *);

static Result layer_vkEnumeratePhysicalDevices(Handle instance, uint32_t *count, Handle *found) {
    Result result = inject_call_fault("vkEnumeratePhysicalDevices");
    if (result) return result;
    if (is_fault("list-fails")) return INITIALIZATION_FAILED;
    if (is_fault("no-device")) {
        *count = 0;
        return SUCCESS;
    }
    return next_enumerate_devices(instance, count, found);
}

static void layer_vkGetPhysicalDeviceMemoryProperties(Handle device, MemoryProperties *reported) {
    next_memory_properties(device, reported);
    for (uint32_t type = 0; type < reported->type_count; type++) {
        if (is_fault("device-only")) reported->types[type].flags &= ~HOST_VISIBLE;
        if (is_fault("all-flags")) reported->types[type].flags = ALL_FLAGS;
        if (is_fault("bad-heap")) reported->types[type].heap = 15;
    }
    for (uint32_t heap = 0; heap < reported->heap_count; heap++)
        if (is_fault("zero-heaps")) reported->heaps[heap].size = 0;
    if (is_fault("memory-types")) reported->type_count = 1000;
    if (is_fault("no-memory-types")) reported->type_count = 0;
}

static void corrupt_properties(char *reported) {
    if (is_fault("zero-limits")) memset(reported + LIMITS_OFFSET, 0, LIMITS_BYTES);
    if (is_fault("huge-limits")) memset(reported + LIMITS_OFFSET, 0xff, LIMITS_BYTES);
    /* Terminal escape sequences and no terminating zero. */
    for (int at = 0; is_fault("wild-name") && at < NAME_BYTES; at++) reported[NAME_OFFSET + at] = "\033[2J\r\n<b>"[at % 9];
}

static void layer_vkGetPhysicalDeviceProperties(Handle device, char *reported) {
    next_properties(device, reported);
    corrupt_properties(reported);
}

static void layer_vkGetPhysicalDeviceProperties2(Handle device, char *reported) {
    next_properties2(device, reported);
    corrupt_properties(reported + PROPERTIES_OFFSET);
    for (Header *at = ((Header *)reported); at; at = (Header *)at->next) {
        uint32_t *subgroup_size = at->type == SUBGROUP_PROPERTIES ? (uint32_t *)((char *)at + 16)
            : at->type == PROPERTIES_1_1 ? (uint32_t *)((char *)at + 64) : NULL;
        if (subgroup_size && is_fault("half-subgroups")) *subgroup_size /= 2;
        if (subgroup_size && is_fault("double-subgroups")) *subgroup_size *= 2;
    }
}

typedef struct QueueFamily {
    uint32_t flags, count, bits, width, height, depth;
} QueueFamily;

static void corrupt_families(QueueFamily *family) {
    if (is_fault("no-compute")) family->flags &= ~2u;
}

static void layer_vkGetPhysicalDeviceQueueFamilyProperties(Handle device, uint32_t *count, QueueFamily *reported) {
    next_queue_families(device, count, reported);
    for (uint32_t i = 0; reported && i < *count; i++) corrupt_families(reported + i);
}

static void layer_vkGetPhysicalDeviceQueueFamilyProperties2(Handle device, uint32_t *count, char *reported) {
    next_queue_families2(device, count, reported);
    for (uint32_t i = 0; reported && i < *count; i++) corrupt_families((QueueFamily *)(reported + i * 40 + 16));
}
