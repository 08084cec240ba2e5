//! The queues of a test.

use litmus::Test;

/// Returns the queues of a test, as family and number, in the order in which its threads name them.
pub(crate) fn queues(test: &Test) -> Vec<(u32, u32)> {
    let mut queues = Vec::new();
    for place in test.threads.iter().filter_map(|thread| thread.place.device_placement()) {
        let queue = (place.queue_family, place.queue);
        if !queues.contains(&queue) {
            queues.push(queue);
        }
    }
    queues
}
