/* State of the recorded program: growable texts, the table of Vulkan objects, the journal. */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *allocate(size_t bytes) {
    void *created = calloc(1, bytes ? bytes : 1);
    if (!created) abort();
    return created;
}

static void *duplicate(const void *from, size_t bytes) {
    void *created = allocate(bytes);
    return bytes ? memcpy(created, from, bytes) : created;
}

/* A growable text. */
typedef struct Text {
    char *data;
    size_t length, capacity;
} Text;

static void append(Text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void append(Text *text, const char *format, ...) {
    for (;;) {
        va_list all;
        va_start(all, format);
        size_t room = text->capacity - text->length;
        int added = vsnprintf(text->data ? text->data + text->length : NULL, room, format, all);
        va_end(all);
        if (added < 0) return;
        if ((size_t)added < room) {
            text->length += (size_t)added;
            return;
        }
        text->capacity = 2 * text->capacity + (size_t)added + 64;
        text->data = realloc(text->data, text->capacity);
        if (!text->data) abort();
    }
}

/* Appends a JSON string. Bytes of text that is not UTF-8 are kept. */
static void append_string(Text *text, const char *string) {
    append(text, "\"");
    for (const unsigned char *at = (const unsigned char *)string; *at; at++) {
        if (*at == '"' || *at == '\\') append(text, "\\%c", *at);
        else if (*at < 0x20) append(text, "\\u%04x", *at);
        else append(text, "%c", *at);
    }
    append(text, "\"");
}

/* FNV-1a. */
static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size) {
    const unsigned char *at = data;
    for (size_t i = 0; i < size; i++) hash = (hash ^ at[i]) * 0x100000001b3;
    return hash;
}

/* State of Vulkan objects. An id is never reused, a handle may be. */

typedef struct Bytes {
    size_t size;
    unsigned char *data;
    uint64_t hash;
    char *name; /* The name of a module, or NULL. */
} Bytes;

/* A shader of a graphics pipeline, whose code is in a file named by its hash. */
typedef struct Shader {
    uint32_t stage;
    uint64_t hash;
    char *entry, *constants;
} Shader;

/* The versions of the feature that defines accesses beyond the end of a resource, or 0; of images 1. */
typedef struct Robustness {
    uint32_t storage, uniform, images;
} Robustness;

typedef struct Pipeline {
    Bytes code;
    Robustness robustness;
    char *entry, *constants, *name; /* The constants as an inline table of TOML; the name, or NULL. */
    uint32_t subgroup_size, push_size, set_count;
    bool has_addresses; /* The module may follow addresses in memory. */
    /* Of a graphics pipeline: its stages, 0 if some are not known, its shaders, and its vertex input, which may be dynamic state. */
    uint32_t stages, shader_count, binding_count, attribute_count;
    Shader *shaders;
    VertexBinding *bindings;
    VertexAttribute *attributes;
    bool has_dynamic_vertices;
    /* The locations of fragment outputs that it may write, and those it may read for blending; its tests of depth and stencil. */
    uint32_t output_writes, output_reads;
    bool has_tests, writes_tests, has_ordered_inputs;
    uint64_t hash;
} Pipeline;

typedef struct SetLayout {
    uint64_t handle;
    uint32_t count;
    LayoutBinding *bindings;
    bool is_updated_late; /* Descriptors may change between the recording of a dispatch and its submission. */
} SetLayout;

typedef struct Descriptor {
    uint32_t binding, element;
    int32_t kind;
    ImageDescriptor image;
    BufferDescriptor buffer;
    uint64_t texels; /* A buffer view. */
    Bytes block;     /* An inline uniform block. */
} Descriptor;

typedef struct DescriptorSet {
    const SetLayout *layout;
    uint32_t count;
    Descriptor *descriptors;
    bool is_cut; /* Elements of large arrays are not stored. */
    uint64_t updates;
    uint64_t address, size; /* Of a range of a descriptor buffer, else 0. */
    bool is_unread;         /* The range, or a descriptor in it, is not known. */
} DescriptorSet;

typedef struct PipelineLayout {
    uint32_t set_count, push_size; /* The bytes of push constants that compute shaders can read. */
    const SetLayout **sets;
} PipelineLayout;

typedef struct Template {
    uint32_t count;
    int32_t point; /* Of push descriptors. */
    TemplateEntry *entries;
} Template;

typedef struct Buffer {
    uint64_t id, handle, size, address;
    uint64_t memory, offset; /* Where it is bound: the id of the memory. */
    bool is_watched;         /* Mapped memory that the host may write is compared with a copy. */
    Handle device;
    uint64_t pointed_at;     /* The number of the last search that found an address of it. */
    struct Buffer *next, *next_bound; /* Of those with an address; of those that are bound. */
} Buffer;

typedef struct Image {
    uint64_t id;
    ImageInfo info;
} Image;

/* Host memory with device memory in it. The copy of the buffers in it shows what the host has changed since. */
typedef struct Mapping {
    uint64_t handle, memory, offset, size; /* The memory and its id. */
    const unsigned char *pointer;
    unsigned char *copy;
    Handle device;
    struct Mapping *next;
} Mapping;

typedef struct Swapchain {
    uint32_t count;
    uint64_t *images;
    SwapchainInfo info;
} Swapchain;

/* An object without other state. `value` is the last one that was reported; of a fence, 1 while a submission is to signal it. */
typedef struct Identity {
    uint64_t id, value;
    bool is_timeline;
} Identity;

enum { MODULES, LAYOUTS, PIPELINE_LAYOUTS, BUFFER_VIEWS, RENDER_PASSES, FRAMEBUFFERS, SWAPCHAINS, MAPPINGS, DESCRIPTOR_SETS, DESCRIPTOR_RANGES, DESCRIPTOR_BYTES, TEMPLATES, PIPELINES, BUFFERS, IMAGES, VIEWS, SAMPLERS, COMMANDS, POOLS, MEMORIES, QUEUES, FENCES,
       SEMAPHORES, EVENTS };
typedef struct Object {
    uint64_t key;
    int kind;
    bool is_used;
    void *value;
} Object;

/* A hash table with linear probing. */
static Object *objects;
static size_t object_capacity, object_count;
static uint64_t last_id;

static Object *find_slot(int kind, uint64_t key) {
    size_t at = (size_t)(hash_bytes((uint64_t)kind + 0xcbf29ce484222325, &key, sizeof key) >> 7);
    for (;; at++) {
        Object *slot = &objects[at & (object_capacity - 1)];
        if (!slot->is_used || (slot->key == key && slot->kind == kind)) return slot;
    }
}

static void *find_object(int kind, uint64_t key) { return object_capacity && key ? find_slot(kind, key)->value : NULL; }

/* Replaces the state of an earlier object with this handle. Most state is not freed: recorded commands may point to it. */
static void *store_object(int kind, uint64_t key, void *value) {
    if (2 * (object_count + 1) > object_capacity) {
        Object *old = objects;
        size_t old_capacity = object_capacity;
        object_capacity = object_capacity ? 2 * object_capacity : 1024;
        objects = allocate(object_capacity * sizeof *objects);
        object_count = 0;
        for (size_t i = 0; i < old_capacity; i++) {
            if (!old[i].is_used || !old[i].value) continue;
            *find_slot(old[i].kind, old[i].key) = old[i];
            object_count++;
        }
        free(old);
    }
    Object *slot = find_slot(kind, key);
    if (!slot->is_used) object_count++;
    *slot = (Object){ key, kind, true, value };
    return value;
}

static void forget_object(int kind, uint64_t key) {
    if (object_capacity && key && find_slot(kind, key)->is_used) find_slot(kind, key)->value = NULL;
}

/* Returns the id of an object; one that was created before the layer could see it gets a new one. */
static Identity *identity(int kind, uint64_t key) {
    Identity *found = find_object(kind, key);
    if (!found) {
        found = store_object(kind, key, allocate(sizeof *found));
        found->id = ++last_id;
    }
    return found;
}

static uint64_t object_id(int kind, uint64_t key) { return key ? identity(kind, key)->id : 0; }

static uint64_t buffer_id(uint64_t handle) {
    const Buffer *buffer = find_object(BUFFERS, handle);
    return buffer ? buffer->id : 0;
}

static uint64_t image_id(uint64_t handle) {
    const Image *image = find_object(IMAGES, handle);
    return image ? image->id : 0;
}

/* The journal: a folder of this process below $VK_LITMUS_RECORD, and in it one JSON object a line. A fork gets its own. */

static char folder[3072];
static int journal = -1;
static long journal_process;
static unsigned long kept_per_kind = 1;
static uint64_t content_limit = (uint64_t)1 << 30, content_bytes;

static uint64_t read_number(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

static bool open_journal(void) {
    if (journal_process == (long)getpid()) return journal >= 0;
    journal_process = (long)getpid();
    journal = -1;
    const char *parent = getenv("VK_LITMUS_RECORD");
    if (!parent) return false;
    kept_per_kind = (unsigned long)read_number("VK_LITMUS_RECORD_KEEP", 1);
    content_limit = read_number("VK_LITMUS_RECORD_BYTES", content_limit);
    int length = snprintf(folder, sizeof folder, "%s/%ld", parent, journal_process);
    char path[4096];
    if (length < 0 || (size_t)length >= sizeof folder || (mkdir(folder, 0777) != 0 && errno != EEXIST)) return false;
    snprintf(path, sizeof path, "%s/kinds", folder);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/journal.jsonl", folder);
    journal = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    snprintf(path, sizeof path, "%s/complete", folder);
    int mark = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (mark >= 0) close(mark);
    return journal >= 0;
}

/* Writes a line at once, so that a crash of the program loses none. After a failed write (a full disk) nothing follows, and the journal is
 * not complete. */
static void write_line(Text *line) {
    append(line, "\n");
    if (open_journal() && write(journal, line->data, line->length) != (ssize_t)line->length) {
        char path[4096];
        snprintf(path, sizeof path, "%s/complete", folder);
        unlink(path);
        journal = -1;
    }
    free(line->data);
    *line = (Text){ 0 };
}

#define WRITE_EVENT(...) \
    do { \
        Text event_line = { 0 }; \
        append(&event_line, __VA_ARGS__); \
        write_line(&event_line); \
    } while (0)
