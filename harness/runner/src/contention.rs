//! Detects CPU contention and adapts rendezvous dispatches to it.
//!
//! On a busy machine, the partners of a rendezvous rarely run at the same time. A thread that runs then polls
//! until its limit in every dispatch, and uses up its time slice. Threads that slept are scheduled soon after
//! they wake, so that both run and the rendezvous succeeds.
//!
//! Under contention, a dispatch with a rendezvous therefore follows a rest, has a short polling limit, and is
//! short itself: after a few milliseconds, one partner continues alone. One success interleaves thousands of
//! instances. Such dispatches get three quarters of the time until the test is exercised, and one quarter
//! afterwards. The other dispatches have no rendezvous and lose no time.

use std::time::Duration;

use crate::exercise::ContentionTimeShares;

/// The weight of older dispatches decays by this factor.
const DECAY: f64 = 0.8;
/// A run with less than this share of one processor is under contention. On an idle machine it has two, or
/// one at the end of a dispatch.
const CONTENTION_THRESHOLD: f64 = 0.75;
/// The polling limit under contention, in loads: much less than a time slice of the system.
const CONTENDED_MAX_POLLS: u32 = 25_000;
/// The length of a rest, as a multiple of the processor time of the last dispatch.
const REST_FACTOR: u32 = 3;
const MAX_REST: Duration = Duration::from_millis(30);

/// The minimum duration of a sequence of dispatches of one kind.
const MIN_SEQUENCE_TIME: Duration = Duration::from_millis(20);
/// The shares of the time for dispatches with and without rendezvous, while too few instances interleaved.
const UNEXERCISED_SHARES: (u32, u32) = (3, 1);
/// The same shares for an exercised test.
const EXERCISED_SHARES: (u32, u32) = (1, 3);

/// Processor time and elapsed time of the dispatches of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct DispatchTimes {
    /// Decayed sums of processor time and elapsed time, in seconds, over dispatches without a rest.
    processor_seconds: f64,
    elapsed_seconds: f64,
    last_processor_time: Duration,
    /// Time of dispatches under contention with their rests: with a rendezvous, and without.
    rendezvous_time: Duration,
    solo_time: Duration,
    /// True during a sequence of dispatches without rendezvous.
    skips_rendezvous: bool,
    /// The share of its time that the run uses; `None` if it is unknown which dispatches exercise the test.
    time_shares: Option<ContentionTimeShares>,
    /// True once the test is exercised.
    pub is_exercised: bool,
}

/// Per-dispatch scheduling decision: rendezvous patience, rest before it, and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DispatchDecision {
    /// The polling limit in loads, which overrides a larger drawn one. 0 disables the rendezvous.
    pub max_polls: u32,
    /// The rest before the dispatch.
    pub rest: Duration,
    /// The dispatch is to be short.
    pub is_short: bool,
}

impl DispatchDecision {
    /// The drawn parameters apply unchanged.
    pub const DRAWN: DispatchDecision = DispatchDecision::with_max_polls(u32::MAX);

    /// Starts without a rest, with at most this polling limit.
    const fn with_max_polls(patience: u32) -> DispatchDecision {
        DispatchDecision { max_polls: patience, rest: Duration::ZERO, is_short: false }
    }
}

impl DispatchTimes {
    /// Starts a run; `parts` is `None` if it is unknown which dispatches exercise the test.
    pub fn new(parts: Option<ContentionTimeShares>) -> DispatchTimes {
        DispatchTimes { time_shares: parts, ..DispatchTimes::default() }
    }

    /// Returns the time that the run may use. Under contention, it depends on whether the test is exercised.
    pub fn usable_time(&self, time: Duration) -> Duration {
        match self.time_shares {
            Some(parts) if self.rendezvous_time + self.solo_time > Duration::ZERO => {
                time * if self.is_exercised { parts.exercised } else { parts.seeking } / 100
            }
            _ => time,
        }
    }

    /// Records a dispatch: processor time, elapsed time, and the time including rest and host work. The
    /// latter is balanced between dispatches with and without rendezvous.
    pub fn record_dispatch(
        &mut self,
        decision: DispatchDecision,
        cost: Duration,
        elapsed: Duration,
        total: Duration,
    ) {
        // A thread that rested is scheduled first, so that its dispatch shows nothing about contention.
        if !decision.is_short {
            self.processor_seconds = DECAY * self.processor_seconds + cost.as_secs_f64();
            self.elapsed_seconds = DECAY * self.elapsed_seconds + elapsed.as_secs_f64();
        }
        self.last_processor_time = cost;
        if self.is_contended() {
            let time = if decision.max_polls > 0 { &mut self.rendezvous_time } else { &mut self.solo_time };
            *time += total;
            let (rendezvous_share, solo_share) =
                if self.is_exercised { EXERCISED_SHARES } else { UNEXERCISED_SHARES };
            let (met, apart) = (self.rendezvous_time * solo_share, self.solo_time * rendezvous_share);
            // The times are cross-multiplied by the shares of the other kind; the minimum adds hysteresis.
            self.skips_rendezvous = match self.skips_rendezvous {
                true => apart < met,
                false => met >= apart + MIN_SEQUENCE_TIME * solo_share,
            };
        }
    }

    /// Returns true if other processes use the processors for much of the time.
    fn is_contended(&self) -> bool {
        self.processor_seconds < CONTENTION_THRESHOLD * self.elapsed_seconds
    }

    /// Returns how the next dispatch is made.
    pub fn next_decision(&self) -> DispatchDecision {
        if self.elapsed_seconds == 0.0 {
            // No measurement yet.
            DispatchDecision::with_max_polls(CONTENDED_MAX_POLLS)
        } else if !self.is_contended() {
            DispatchDecision::DRAWN
        } else if self.skips_rendezvous {
            DispatchDecision::with_max_polls(0)
        } else {
            DispatchDecision {
                max_polls: CONTENDED_MAX_POLLS,
                rest: (self.last_processor_time * REST_FACTOR).min(MAX_REST),
                is_short: true,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTS: ContentionTimeShares = ContentionTimeShares { exercised: 50, seeking: 250 };

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn without_contention_drawn_parameters_apply() {
        let mut times = DispatchTimes::default();
        assert_eq!(times.next_decision(), DispatchDecision::with_max_polls(CONTENDED_MAX_POLLS));
        for _ in 0..20 {
            // Two processors.
            times.record_dispatch(DispatchDecision::DRAWN, millis(18), millis(10), millis(10));
            assert_eq!(times.next_decision(), DispatchDecision::DRAWN);
        }
        // One slow dispatch is not contention.
        times.record_dispatch(DispatchDecision::DRAWN, millis(18), millis(30), millis(30));
        assert_eq!(times.next_decision(), DispatchDecision::DRAWN);
    }

    /// Runs `dispatches` dispatches under contention and returns the share of the time in dispatches with a
    /// rendezvous, which take longer.
    fn run_under_contention(company: &mut DispatchTimes, dispatches: u32) -> f64 {
        let (mut met, mut apart) = (Duration::ZERO, Duration::ZERO);
        for dispatch in 0..dispatches {
            let decision = company.next_decision();
            if dispatch > 0 {
                assert!(
                    decision.max_polls <= CONTENDED_MAX_POLLS && decision.rest <= MAX_REST,
                    "{dispatch}: {decision:?}"
                );
                assert_eq!(
                    (decision.rest > Duration::ZERO, decision.is_short),
                    (decision.max_polls > 0, decision.max_polls > 0)
                );
            }
            let took = if decision.max_polls > 0 { millis(60) } else { millis(15) };
            // Counting takes longest.
            let whole = took + decision.rest + if decision.max_polls > 0 { millis(2) } else { millis(40) };
            *if decision.max_polls > 0 { &mut met } else { &mut apart } += whole;
            company.record_dispatch(decision, millis(3), took, whole);
        }
        met.as_secs_f64() / (met + apart).as_secs_f64()
    }

    #[test]
    fn under_contention_rendezvous_get_most_time_until_exercised() {
        let mut times = DispatchTimes::new(Some(PARTS));
        let share = run_under_contention(&mut times, 400);
        assert!((0.7..0.8).contains(&share), "{share}");
        times.is_exercised = true;
        // The time spent on rendezvous is compensated.
        run_under_contention(&mut times, 4000);
        let share = run_under_contention(&mut times, 400);
        assert!((0.2..0.3).contains(&share), "{share}");
        // After the contention ends, the drawn parameters apply again.
        for _ in 0..2000 {
            times.record_dispatch(times.next_decision(), millis(9), millis(10), millis(10));
        }
        assert_eq!(times.next_decision(), DispatchDecision::DRAWN);
    }

    #[test]
    fn short_dispatches_do_not_end_contention() {
        let mut times = DispatchTimes::default();
        times.record_dispatch(
            DispatchDecision::with_max_polls(CONTENDED_MAX_POLLS),
            millis(1),
            millis(10),
            millis(10),
        );
        let decision = times.next_decision();
        assert!(decision.is_short, "{decision:?}");
        // Partners that were scheduled immediately.
        (0..50).for_each(|_| times.record_dispatch(decision, millis(20), millis(10), millis(10)));
        assert_ne!(times.next_decision(), DispatchDecision::DRAWN);
    }

    #[test]
    fn under_contention_dispatches_are_long_until_exercised() {
        let time = millis(100);
        let mut times = DispatchTimes::new(Some(PARTS));
        assert_eq!(times.usable_time(time), time);
        times.record_dispatch(DispatchDecision::DRAWN, millis(10), millis(10), millis(10));
        times.is_exercised = true;
        assert_eq!(times.usable_time(time), time, "without contention");
        let mut times = DispatchTimes::new(Some(PARTS));
        times.record_dispatch(DispatchDecision::DRAWN, millis(1), millis(10), millis(10));
        assert_eq!(times.usable_time(time), time * 5 / 2);
        times.is_exercised = true;
        assert_eq!(times.usable_time(time), time / 2);
        // It is unknown when the test would be exercised.
        let mut times = DispatchTimes::new(None);
        times.record_dispatch(DispatchDecision::DRAWN, millis(1), millis(10), millis(10));
        assert_eq!(times.usable_time(time), time);
    }
}
