//! Store buffering by two host threads: a baseline for the rates of kernels.
//!
//! It has the structure of the kernels: two threads meet at a counter before each round, then each runs its
//! side of eight instances whose locations share a cache line. The ratio of a device's rate to this rate is
//! more stable than either, since other load affects both alike.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use crate::affinity;
use crate::classic::StoreBuffering;

/// Instances of a round.
const LANES: usize = 8;
/// Rounds between two reads of the clock.
const ROUNDS: usize = 4096;
/// Polls after which a waiting thread yields its processor, on which the partner may have to run.
const POLLS_BEFORE_YIELD: u32 = 1 << 12;

/// The locations of one round: x and y of each instance.
#[repr(align(64))]
#[derive(Default)]
struct RoundLocations([AtomicU32; 2 * LANES]);

/// A counter in its own cache line.
#[repr(align(128))]
#[derive(Default)]
struct PaddedCounter(AtomicU32);

/// Runs for about `time`.
pub fn run(time: Duration) -> StoreBuffering {
    let mut counts = StoreBuffering::default();
    let lines: Vec<RoundLocations> = std::iter::repeat_with(RoundLocations::default).take(ROUNDS).collect();
    let started = Instant::now();
    while started.elapsed() < time {
        lines.iter().flat_map(|line| &line.0).for_each(|word| word.store(0, Ordering::Relaxed));
        let meeting = PaddedCounter::default();
        let (own, other) = std::thread::scope(|scope| {
            let run_one_side = |side: usize| {
                affinity::take_processor(side);
                run_side(side, &lines, &meeting.0)
            };
            let start = |side| std::thread::Builder::new().spawn_scoped(scope, move || run_one_side(side));
            let partner = start(1);
            // Also a new thread, so that the caller's thread keeps its affinity.
            let first = start(0);
            if first.is_err() || partner.is_err() {
                // The other side would wait forever.
                meeting.0.store(u32::MAX / 2, Ordering::Relaxed);
            }
            let reads = |thread: io::Result<ScopedJoinHandle<'_, Vec<u32>>>| thread.ok()?.join().ok();
            (reads(first), reads(partner))
        });
        // The limit of threads is reached.
        let (Some(own), Some(other)) = (own, other) else { return counts };
        for (r0, r1) in own.iter().zip(&other) {
            if let Some(count) = counts.counts.get_mut((2 * r0 + r1) as usize) {
                *count += 1;
            }
        }
    }
    counts.seconds = started.elapsed().as_secs_f64();
    counts
}

fn run_side(side: usize, lines: &[RoundLocations], meeting: &AtomicU32) -> Vec<u32> {
    let mut reads = Vec::with_capacity(lines.len() * LANES);
    for (round, line) in (1u32..).zip(lines) {
        // A rendezvous of the two sides: the counter rises by two in each round.
        meeting.fetch_add(1, Ordering::Relaxed);
        let mut polls = 0;
        while meeting.load(Ordering::Relaxed) < 2 * round {
            polls += 1;
            // On a single processor, the other side needs it.
            if polls % POLLS_BEFORE_YIELD == 0 {
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
        // Store buffering: each side writes its own location, then reads that of the other side.
        for lane in 0..LANES {
            line.0[2 * lane + side].store(1, Ordering::Relaxed);
        }
        for lane in 0..LANES {
            reads.push(line.0[2 * lane + 1 - side].load(Ordering::Relaxed));
        }
    }
    reads
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instance_is_counted_once() {
        let seen = run(Duration::from_millis(1));
        assert!(seen.instances() > 0 && seen.instances().is_multiple_of((ROUNDS * LANES) as u64));
        assert_eq!(seen.other, 0);
        assert!(seen.seconds > 0.0);
    }
}
