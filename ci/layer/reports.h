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
enum { BEFORE_LIMITS = 296, LIMITS = 504, BEFORE_PROPERTIES = 16 };
/* Bytes before the device name, and bytes of it. */
enum { BEFORE_NAME = 20, NAME = 256 };

static Result (*enumerate)(Handle, uint32_t *, Handle *);
static void (*memory_properties)(Handle, MemoryProperties *);
static void (*properties)(Handle, char *);
static void (*properties2)(Handle, char *);
static void (*families)(Handle, uint32_t *, void *);
static void (*families2)(Handle, uint32_t *, void *);

static Result layer_vkEnumeratePhysicalDevices(Handle instance, uint32_t *count, Handle *found) {
    Result result = fault("vkEnumeratePhysicalDevices");
    if (result) return result;
    if (is("list-fails")) return INITIALIZATION_FAILED;
    if (is("no-device")) {
        *count = 0;
        return SUCCESS;
    }
    return enumerate(instance, count, found);
}

static void layer_vkGetPhysicalDeviceMemoryProperties(Handle device, MemoryProperties *told) {
    memory_properties(device, told);
    for (uint32_t type = 0; type < told->type_count; type++) {
        if (is("device-only")) told->types[type].flags &= ~HOST_VISIBLE;
        if (is("all-flags")) told->types[type].flags = ALL_FLAGS;
        if (is("bad-heap")) told->types[type].heap = 15;
    }
    for (uint32_t heap = 0; heap < told->heap_count; heap++)
        if (is("zero-heaps")) told->heaps[heap].size = 0;
    if (is("memory-types")) told->type_count = 1000;
}

static void spoil_properties(char *told) {
    if (is("zero-limits")) memset(told + BEFORE_LIMITS, 0, LIMITS);
    if (is("huge-limits")) memset(told + BEFORE_LIMITS, 0xff, LIMITS);
    /* Terminal escape sequences and no terminating zero. */
    for (int at = 0; is("wild-name") && at < NAME; at++) told[BEFORE_NAME + at] = "\033[2J\r\n<b>"[at % 9];
}

static void layer_vkGetPhysicalDeviceProperties(Handle device, char *told) {
    properties(device, told);
    spoil_properties(told);
}

static void layer_vkGetPhysicalDeviceProperties2(Handle device, char *told) {
    properties2(device, told);
    spoil_properties(told + BEFORE_PROPERTIES);
    for (Header *at = ((Header *)told); at; at = (Header *)at->next) {
        uint32_t *lanes = at->type == SUBGROUP_PROPERTIES ? (uint32_t *)((char *)at + 16)
            : at->type == PROPERTIES_1_1 ? (uint32_t *)((char *)at + 64) : NULL;
        if (lanes && is("half-subgroups")) *lanes /= 2;
        if (lanes && is("double-subgroups")) *lanes *= 2;
    }
}

typedef struct QueueFamily {
    uint32_t flags, count, bits, width, height, depth;
} QueueFamily;

static void spoil_families(QueueFamily *family) {
    if (is("no-compute")) family->flags &= ~2u;
}

static void layer_vkGetPhysicalDeviceQueueFamilyProperties(Handle device, uint32_t *count, QueueFamily *told) {
    families(device, count, told);
    for (uint32_t i = 0; told && i < *count; i++) spoil_families(told + i);
}

static void layer_vkGetPhysicalDeviceQueueFamilyProperties2(Handle device, uint32_t *count, char *told) {
    families2(device, count, told);
    for (uint32_t i = 0; told && i < *count; i++) spoil_families((QueueFamily *)(told + i * 40 + 16));
}
