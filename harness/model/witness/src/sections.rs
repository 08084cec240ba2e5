//! Orders in which overlapping fragments execute their interlocked sections.

use litmus::{InstructionKind, InterlockOrder, Test};

/// Returns the possible orders F of fragment shader invocations (VK-SW-12): the order of the columns, or any
/// sequential order of unordered sections.
pub fn fragment_orders(test: &Test) -> Vec<Vec<usize>> {
    let unordered = test.threads.iter().flat_map(|thread| &thread.instructions).any(|instruction| {
        matches!(&instruction.kind, InstructionKind::Interlock(end) if end.order == InterlockOrder::Unordered)
    });
    let mut orders: Vec<Vec<usize>> = vec![Vec::new()];
    for thread in 0..test.threads.len() {
        let mut longer = Vec::new();
        for order in &orders {
            // Each place for the next one, or the last.
            for place in (if unordered { 0 } else { thread })..=thread {
                longer.push([&order[..place], &[thread], &order[place..]].concat());
            }
        }
        orders = longer;
    }
    orders
}
