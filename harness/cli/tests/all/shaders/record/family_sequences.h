/* Programs with resources that several queue families, or another API, own. */

#define EXTERNAL VK_QUEUE_FAMILY_EXTERNAL

/* Both families read what the host wrote. */
static void queues_host_contents(void) {
    VkCommandBuffer first = begin(0), second = begin(1);
    copy_words(first, 1, 2, 0, 64);
    if (!is_wrong) transfer_words(first, 1, 0, 64, 0, 1);
    if (!is_wrong) transfer_words(second, 0, 0, 64, 0, 1);
    copy_words(second, 1, 3, 0, 64);
    submit_in_turn(first, second);
}

static void queues_acquire_missing(void) {
    VkCommandBuffer first = begin(0), second = begin(1);
    copy_words(first, 0, 1, 0, 64);
    transfer_words(first, 1, 0, 64, 0, 1);
    if (!is_wrong) transfer_words(second, 0, 0, 64, 0, 1);
    copy_words(second, 1, 2, 0, 64);
    submit_in_turn(first, second);
}

static void queues_release_missing(void) {
    VkCommandBuffer first = begin(0), second = begin(1);
    copy_words(first, 0, 1, 0, 64);
    if (!is_wrong) transfer_words(first, 1, 0, 64, 0, 1);
    transfer_words(second, 0, 0, 64, 0, 1);
    copy_words(second, 1, 2, 0, 64);
    submit_in_turn(first, second);
}

/* No command needs an order but the halves of the transfer. */
static void queues_halves_order(void) {
    VkCommandBuffer first = begin(0), second = begin(1);
    copy_words(first, 1, 2, 0, 64);
    transfer_words(first, 1, 0, 64, 0, 1);
    transfer_words(second, 0, 0, 64, 0, 1);
    copy_words(second, 1, 3, 0, 64);
    if (is_wrong) {
        submit(first);
        submit_to(1, second, VK_NULL_HANDLE, 0, 0, VK_NULL_HANDLE, 0, VK_NULL_HANDLE);
    } else submit_in_turn(first, second);
}

static void transfer_image(VkCommandBuffer commands, int is_release, VkImageLayout from, VkImageLayout to) {
    VkImageMemoryBarrier2 transfer = { VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER_2, NULL, is_release ? CLEAR : 0, is_release ? TO : 0, is_release ? 0 : COPY,
        is_release ? 0 : FROM, from, to, 0, 1, colour, { COLOUR, 0, 1, 0, 1 } };
    depend(commands, (VkDependencyInfo){ .imageMemoryBarrierCount = 1, .pImageMemoryBarriers = &transfer });
}

static void queues_layouts(void) {
    VkCommandBuffer first = begin(0), second = begin(1);
    prepare(first, colour, COLOUR, 1);
    clear_colour(first, colour);
    transfer_image(first, 1, GENERAL, is_wrong ? GENERAL : SOURCE);
    transfer_image(second, 0, GENERAL, SOURCE);
    read_image(second, colour, SOURCE, 0);
    submit_in_turn(first, second);
}

/* The first family needs what it wrote before the second one had it. */
static void queues_return(void) {
    VkSemaphore semaphore = create_semaphore(VK_SEMAPHORE_TYPE_BINARY), returned = create_semaphore(VK_SEMAPHORE_TYPE_BINARY);
    VkCommandBuffer first = begin(0), second = begin(1), third = begin(0);
    copy_words(first, 0, 1, 0, 64);
    transfer_words(first, 1, 0, 64, 0, 1);
    transfer_words(second, 0, 0, 64, 0, 1);
    copy_words(second, 1, 2, 0, 64);
    if (!is_wrong) transfer_words(second, 1, 0, 64, 1, 0);
    if (!is_wrong) transfer_words(third, 0, 0, 64, 1, 0);
    copy_words(third, 1, 3, 0, 64);
    submit_to(0, first, VK_NULL_HANDLE, 0, 0, semaphore, 0, VK_NULL_HANDLE);
    submit_to(1, second, semaphore, 0, COPY, returned, 0, VK_NULL_HANDLE);
    submit_to(0, third, returned, 0, COPY, VK_NULL_HANDLE, 0, VK_NULL_HANDLE);
}

/* What the second family overwrites needs no transfer. */
static void queues_overwritten(void) {
    VkCommandBuffer first = begin(0), second = begin(1);
    copy_words(first, 0, 1, 0, 64);
    if (!is_wrong) copy_words(second, 3, 1, 0, 64);
    barrier(second, COPY, TO, COPY, FROM);
    copy_words(second, 1, 2, 0, 64);
    submit_in_turn(first, second);
}

/* Another API owns the words between the submissions. */
static void external_acquire(void) {
    VkCommandBuffer first = begin(0), second = begin(0);
    copy_words(first, 0, 1, 0, 64);
    transfer_words(first, 1, 0, 64, 0, EXTERNAL);
    submit(first);
    CHECK(vkQueueWaitIdle(queues[0]));
    if (!is_wrong) transfer_words(second, 0, 0, 64, EXTERNAL, 0);
    copy_words(second, 1, 2, 0, 64);
    submit(second);
}

static void external_release(void) {
    VkCommandBuffer first = begin(0), second = begin(0);
    copy_words(first, 0, 1, 0, 64);
    if (!is_wrong) transfer_words(first, 1, 0, 64, 0, EXTERNAL);
    submit(first);
    CHECK(vkQueueWaitIdle(queues[0]));
    transfer_words(second, 0, 0, 64, EXTERNAL, 0);
    copy_words(second, 1, 2, 0, 64);
    submit(second);
}

#define FAMILY_PROGRAMS { "queues-host-contents", queues_host_contents }, { "queues-acquire-missing", queues_acquire_missing }, \
    { "queues-release-missing", queues_release_missing }, { "queues-halves-order", queues_halves_order }, { "queues-layouts", queues_layouts }, \
    { "queues-return", queues_return }, { "queues-overwritten", queues_overwritten }, { "external-acquire", external_acquire }, \
    { "external-release", external_release }
