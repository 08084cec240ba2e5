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

use crate::exercise::Parts;

/// The weight of older dispatches decays by this factor.
const FADING: f64 = 0.8;
/// A run with less than this share of one processor is under contention. On an idle machine it has two, or
/// one at the end of a dispatch.
const CROWDED: f64 = 0.75;
/// The polling limit under contention, in loads: much less than a time slice of the system.
const PATIENCE: u32 = 25_000;
/// The length of a rest, as a multiple of the processor time of the last dispatch.
const REST: u32 = 3;
/// The maximum rest.
const MOST_REST: Duration = Duration::from_millis(30);

/// The minimum duration of a sequence of dispatches of one kind.
const STRETCH: Duration = Duration::from_millis(20);
/// The shares of the time for dispatches with and without rendezvous, while too few instances interleaved.
const SEEKING: (u32, u32) = (3, 1);
/// The same shares for an exercised test.
const PLENTY: (u32, u32) = (1, 3);

/// Processor time and elapsed time of the dispatches of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct DispatchTimes {
    /// Decayed sums of processor time and elapsed time, in seconds, over dispatches without a rest.
    used: f64,
    went_by: f64,
    /// Processor time of the last dispatch.
    cost: Duration,
    /// Time of dispatches under contention with their rests: with a rendezvous, and without.
    met: Duration,
    apart: Duration,
    /// True during a sequence of dispatches without rendezvous.
    keeps_apart: bool,
    /// The share of its time that the run uses; `None` if it is unknown which dispatches exercise the test.
    parts: Option<Parts>,
    /// True once the test is exercised.
    pub has_enough: bool,
}

/// Per-dispatch scheduling decision: rendezvous patience, rest before it, and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DispatchDecision {
    /// The polling limit in loads, which overrides a larger drawn one. 0 disables the rendezvous.
    pub patience: u32,
    /// The rest before the dispatch.
    pub rest: Duration,
    /// The dispatch is to be short.
    pub short: bool,
}

impl DispatchDecision {
    /// The drawn parameters apply unchanged.
    pub const DRAWN: DispatchDecision = DispatchDecision::patient(u32::MAX);

    /// Starts without a rest, with at most this polling limit.
    const fn patient(patience: u32) -> DispatchDecision {
        DispatchDecision { patience, rest: Duration::ZERO, short: false }
    }
}

impl DispatchTimes {
    /// Starts a run; `parts` is `None` if it is unknown which dispatches exercise the test.
    pub fn new(parts: Option<Parts>) -> DispatchTimes {
        DispatchTimes { parts, ..DispatchTimes::default() }
    }

    /// Returns the time that the run may use. Under contention, it depends on whether the test is exercised.
    pub fn part(&self, time: Duration) -> Duration {
        match self.parts {
            Some(parts) if self.met + self.apart > Duration::ZERO => {
                time * if self.has_enough { parts.exercised } else { parts.seeking } / 100
            }
            _ => time,
        }
    }

    /// Records a dispatch: processor time, elapsed time, and the time including rest and host work. The
    /// latter is balanced between dispatches with and without rendezvous.
    pub fn note(&mut self, way: DispatchDecision, cost: Duration, took: Duration, whole: Duration) {
        // A thread that rested is scheduled first, so that its dispatch shows nothing about contention.
        if !way.short {
            self.used = FADING * self.used + cost.as_secs_f64();
            self.went_by = FADING * self.went_by + took.as_secs_f64();
        }
        self.cost = cost;
        if self.is_there() {
            let time = if way.patience > 0 { &mut self.met } else { &mut self.apart };
            *time += whole;
            let (meeting, others) = if self.has_enough { PLENTY } else { SEEKING };
            let (met, apart) = (self.met * others, self.apart * meeting);
            // The times are cross-multiplied by the shares of the other kind; the stretch adds hysteresis.
            self.keeps_apart = match self.keeps_apart {
                true => apart < met,
                false => met >= apart + STRETCH * others,
            };
        }
    }

    /// Returns true if other processes use the processors for much of the time.
    fn is_there(&self) -> bool {
        self.used < CROWDED * self.went_by
    }

    /// Returns how the next dispatch is made.
    pub fn way(&self) -> DispatchDecision {
        if self.went_by == 0.0 {
            // No measurement yet.
            DispatchDecision::patient(PATIENCE)
        } else if !self.is_there() {
            DispatchDecision::DRAWN
        } else if self.keeps_apart {
            DispatchDecision::patient(0)
        } else {
            DispatchDecision { patience: PATIENCE, rest: (self.cost * REST).min(MOST_REST), short: true }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTS: Parts = Parts { exercised: 50, seeking: 250 };

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn without_contention_drawn_parameters_apply() {
        let mut company = DispatchTimes::default();
        assert_eq!(company.way(), DispatchDecision::patient(PATIENCE));
        for _ in 0..20 {
            // Two processors.
            company.note(DispatchDecision::DRAWN, millis(18), millis(10), millis(10));
            assert_eq!(company.way(), DispatchDecision::DRAWN);
        }
        // One slow dispatch is not contention.
        company.note(DispatchDecision::DRAWN, millis(18), millis(30), millis(30));
        assert_eq!(company.way(), DispatchDecision::DRAWN);
    }

    /// Runs `dispatches` dispatches under contention and returns the share of the time in dispatches with a
    /// rendezvous, which take longer.
    fn in_company(company: &mut DispatchTimes, dispatches: u32) -> f64 {
        let (mut met, mut apart) = (Duration::ZERO, Duration::ZERO);
        for dispatch in 0..dispatches {
            let way = company.way();
            if dispatch > 0 {
                assert!(way.patience <= PATIENCE && way.rest <= MOST_REST, "{dispatch}: {way:?}");
                assert_eq!((way.rest > Duration::ZERO, way.short), (way.patience > 0, way.patience > 0));
            }
            let took = if way.patience > 0 { millis(60) } else { millis(15) };
            // Counting takes longest.
            let whole = took + way.rest + if way.patience > 0 { millis(2) } else { millis(40) };
            *if way.patience > 0 { &mut met } else { &mut apart } += whole;
            company.note(way, millis(3), took, whole);
        }
        met.as_secs_f64() / (met + apart).as_secs_f64()
    }

    #[test]
    fn under_contention_rendezvous_get_most_time_until_exercised() {
        let mut company = DispatchTimes::new(Some(PARTS));
        let share = in_company(&mut company, 400);
        assert!((0.7..0.8).contains(&share), "{share}");
        company.has_enough = true;
        // The time spent on rendezvous is compensated.
        in_company(&mut company, 4000);
        let share = in_company(&mut company, 400);
        assert!((0.2..0.3).contains(&share), "{share}");
        // After the contention ends, the drawn parameters apply again.
        for _ in 0..2000 {
            company.note(company.way(), millis(9), millis(10), millis(10));
        }
        assert_eq!(company.way(), DispatchDecision::DRAWN);
    }

    #[test]
    fn short_dispatches_do_not_end_contention() {
        let mut company = DispatchTimes::default();
        company.note(DispatchDecision::patient(PATIENCE), millis(1), millis(10), millis(10));
        let way = company.way();
        assert!(way.short, "{way:?}");
        // Partners that were scheduled immediately.
        (0..50).for_each(|_| company.note(way, millis(20), millis(10), millis(10)));
        assert_ne!(company.way(), DispatchDecision::DRAWN);
    }

    #[test]
    fn under_contention_dispatches_are_long_until_exercised() {
        let time = millis(100);
        let mut company = DispatchTimes::new(Some(PARTS));
        assert_eq!(company.part(time), time);
        company.note(DispatchDecision::DRAWN, millis(10), millis(10), millis(10));
        company.has_enough = true;
        assert_eq!(company.part(time), time, "nobody is there");
        let mut company = DispatchTimes::new(Some(PARTS));
        company.note(DispatchDecision::DRAWN, millis(1), millis(10), millis(10));
        assert_eq!(company.part(time), time * 5 / 2);
        company.has_enough = true;
        assert_eq!(company.part(time), time / 2);
        // It is unknown when the test would be exercised.
        let mut company = DispatchTimes::new(None);
        company.note(DispatchDecision::DRAWN, millis(1), millis(10), millis(10));
        assert_eq!(company.part(time), time);
    }
}
