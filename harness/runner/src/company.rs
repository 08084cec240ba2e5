//! Others at the same processors: what a meeting costs while they run, and what a run does about it.
//!
//! On a busy machine the partners of a meeting seldom have a processor at the same time. Whoever has one waits in vain for the
//! whole of its patience, dispatch after dispatch, and uses up what time the system gives it. Partners that have rested are
//! both let in as soon as they are woken, and then meet; so dispatches with a meeting come after a rest and wait for a short
//! time only. For as long again there are dispatches without meetings, which lose nothing.

use std::time::Duration;

/// What an earlier dispatch counts less with each later one.
const FADING: f64 = 0.8;
/// A run that gets less than this part of one processor has company.
const CROWDED: f64 = 0.5;
/// Loads that are spent at most on waiting in company: far less than a slice of the system's time.
const PATIENCE: u32 = 25_000;
/// How often a dispatch's own cost it is rested for.
const REST: u32 = 3;
/// Rest at most.
const MOST_REST: Duration = Duration::from_millis(30);

/// How long dispatches of one kind follow each other: what the last ones without a rest used up must be won back first.
const STRETCH: Duration = Duration::from_millis(100);

/// What dispatches of a run cost, and how long they took.
#[derive(Clone, Debug, Default)]
pub(crate) struct Company {
    /// Seconds of processors, and seconds that went by, of the last dispatches.
    used: f64,
    went_by: f64,
    /// What the last dispatch cost.
    cost: Duration,
    /// Time of dispatches in company, with their rests: those in which partners were to meet, and the others.
    met: Duration,
    apart: Duration,
    /// Whether a stretch of dispatches without meetings goes on.
    keeps_apart: bool,
}

/// How a dispatch is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    /// Loads that are spent at most on waiting, however many are drawn; 0: nobody waits.
    pub patience: u32,
    /// How long to rest before it.
    pub rest: Duration,
}

impl Way {
    /// As it is drawn.
    pub const DRAWN: Way = Way::patient(u32::MAX);

    /// At once, with so much patience at most.
    const fn patient(patience: u32) -> Way {
        Way { patience, rest: Duration::ZERO }
    }
}

impl Company {
    /// Notes what a dispatch has cost, how long it took, and whether partners were to meet.
    pub fn note(&mut self, way: Way, cost: Duration, took: Duration) {
        self.used = FADING * self.used + cost.as_secs_f64();
        self.went_by = FADING * self.went_by + took.as_secs_f64();
        self.cost = cost;
        if self.is_there() {
            let time = if way.patience > 0 { &mut self.met } else { &mut self.apart };
            *time += took + way.rest;
            self.keeps_apart = match self.keeps_apart {
                true => self.apart < self.met,
                false => self.met >= self.apart + STRETCH,
            };
        }
    }

    /// Whether others have the processors for much of the time.
    fn is_there(&self) -> bool {
        self.used < CROWDED * self.went_by
    }

    /// How the next dispatch is made.
    pub fn way(&self) -> Way {
        if self.went_by == 0.0 {
            // Nothing is known yet.
            Way::patient(PATIENCE)
        } else if !self.is_there() {
            Way::DRAWN
        } else if self.keeps_apart {
            Way::patient(0)
        } else {
            Way { patience: PATIENCE, rest: (self.cost * REST).min(MOST_REST) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_run_by_itself_does_as_it_is_told() {
        let mut company = Company::default();
        assert_eq!(company.way(), Way::patient(PATIENCE));
        for _ in 0..20 {
            company.note(Way::DRAWN, millis(9), millis(10));
            assert_eq!(company.way(), Way::DRAWN);
        }
        // One dispatch that had to wait is no company.
        company.note(Way::DRAWN, millis(9), millis(30));
        assert_eq!(company.way(), Way::DRAWN);
    }

    #[test]
    fn in_company_time_is_divided_and_waits_are_short() {
        let mut company = Company::default();
        let (mut met, mut apart) = (Duration::ZERO, Duration::ZERO);
        for dispatch in 0..200 {
            let way = company.way();
            if dispatch > 0 {
                assert!(way.patience <= PATIENCE && way.rest <= MOST_REST, "{dispatch}: {way:?}");
                assert_eq!(way.rest > Duration::ZERO, way.patience > 0, "{dispatch}");
            }
            // A meeting takes longer.
            let took = if way.patience > 0 { millis(60) } else { millis(15) };
            *if way.patience > 0 { &mut met } else { &mut apart } += took + way.rest;
            company.note(way, millis(3), took);
        }
        let share = met.as_secs_f64() / (met + apart).as_secs_f64();
        assert!((0.45..0.55).contains(&share), "{share}");
        // When the others have gone, all is as before.
        for _ in 0..20 {
            company.note(company.way(), millis(9), millis(10));
        }
        assert_eq!(company.way(), Way::DRAWN);
    }
}
