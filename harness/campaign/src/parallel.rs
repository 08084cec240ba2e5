//! Parallel work on all processors, with results in order.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};

/// Stack size of a worker thread: that of the main thread on common systems.
const STACK_BYTES: usize = 8 << 20;

/// Runs `work` for every item in parallel and delivers the results in the order of the items.
///
/// # Errors
/// The first error of `deliver`, which ends the delivery.
pub fn process_in_order<T: Sync, R: Send, E>(
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
    deliver: impl FnMut(R) -> Result<(), E>,
) -> Result<(), E> {
    process_in_order_on(std::thread::available_parallelism().map_or(1, usize::from), items, work, deliver)
}

/// Like [`process_in_order`], on at most `workers` threads.
///
/// # Errors
/// The first error of `deliver`, which ends the delivery.
pub fn process_in_order_on<T: Sync, R: Send, E>(
    workers: usize,
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
    mut deliver: impl FnMut(R) -> Result<(), E>,
) -> Result<(), E> {
    let next = AtomicUsize::new(0);
    let workers = workers.min(items.len());
    std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        let mut threads = 0;
        for _ in 0..workers {
            let (sender, next, work): (Sender<(usize, R)>, _, _) = (sender.clone(), &next, &work);
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
            let started = thread.spawn_scoped(scope, move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { return };
                    // The receiver was dropped if the delivery failed.
                    if sender.send((index, work(item))).is_err() {
                        return;
                    }
                }
            });
            // The limit of threads is reached: the existing ones do the work.
            if started.is_err() {
                break;
            }
            threads += 1;
        }
        drop(sender);
        if threads == 0 {
            return items.iter().try_for_each(|item| deliver(work(item)));
        }
        let mut early = BTreeMap::new();
        let mut next_index = 0;
        for (index, result) in receiver {
            early.insert(index, result);
            while let Some(result) = early.remove(&next_index) {
                next_index += 1;
                deliver(result)?;
            }
        }
        Ok(())
    })
}

/// Runs `work` for every item in parallel; returns the results in the order of the items.
pub fn parallel_map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let mut results = Vec::with_capacity(items.len());
    let delivered: Result<(), Infallible> = process_in_order(items, work, |result| {
        results.push(result);
        Ok(())
    });
    match delivered {
        Ok(()) => results,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..500).collect();
        let mut seen = Vec::new();
        let result: Result<(), ()> = process_in_order(
            &items,
            |n| {
                // The first items take longest.
                (0..(500 - n) * 50).fold(*n, |a, b| std::hint::black_box(a ^ b ^ b))
            },
            |n| {
                seen.push(n);
                Ok(())
            },
        );
        assert_eq!(result, Ok(()));
        assert_eq!(seen, items);
    }

    #[test]
    fn a_failed_delivery_ends_it() {
        let mut delivered = 0;
        let result = process_in_order(
            &[1, 2, 3, 4],
            |n| *n,
            |_| {
                delivered += 1;
                if delivered == 2 { Err("full") } else { Ok(()) }
            },
        );
        assert_eq!(result, Err("full"));
        assert_eq!(delivered, 2);
    }
}
