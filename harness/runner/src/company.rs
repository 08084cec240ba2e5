//! Others at the same processors: what a meeting costs while they run, and what a run does about it.
//!
//! On a busy machine the partners of a meeting seldom have a processor at the same time. Whoever has one waits in vain for the
//! whole of its patience, dispatch after dispatch, and uses up what time the system gives it. Partners that have rested are
//! both let in as soon as they are woken, and then meet; so dispatches with a meeting come after a rest, are short, since what is left
//! of them after some milliseconds is played by one alone, and wait for a short time only. One that succeeds interleaves thousands of
//! instances: three quarters of the time go to such dispatches until the test is exercised, and a quarter afterwards. The others
//! have no meetings, and lose nothing.

use std::time::Duration;

use crate::exercise::Parts;

/// What an earlier dispatch counts less with each later one.
const FADING: f64 = 0.8;
/// A run that gets less than this part of one processor has company. By itself it has two, or one where a dispatch ends alone.
const CROWDED: f64 = 0.75;
/// Loads that are spent at most on waiting in company: far less than a slice of the system's time.
const PATIENCE: u32 = 25_000;
/// How often a dispatch's own cost it is rested for.
const REST: u32 = 3;
/// Rest at most.
const MOST_REST: Duration = Duration::from_millis(30);

/// How long dispatches of one kind follow each other at least.
const STRETCH: Duration = Duration::from_millis(20);
/// The parts of the time for dispatches with meetings and without, as long as too few instances have interleaved.
const SEEKING: (u32, u32) = (3, 1);
/// The same afterwards.
const PLENTY: (u32, u32) = (1, 3);

/// What dispatches of a run cost, and how long they took.
#[derive(Clone, Debug, Default)]
pub(crate) struct Company {
    /// Seconds of processors, and seconds that went by, of the last dispatches that nobody rested for.
    used: f64,
    went_by: f64,
    /// What the last dispatch cost.
    cost: Duration,
    /// Time of dispatches in company, with their rests: those in which partners were to meet, and the others.
    met: Duration,
    apart: Duration,
    /// Whether a stretch of dispatches without meetings goes on.
    keeps_apart: bool,
    /// How much of its time the run takes, where it is known what exercises the test.
    parts: Option<Parts>,
    /// Whether that was seen.
    pub has_enough: bool,
}

/// How a dispatch is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    /// Loads that are spent at most on waiting, however many are drawn; 0: nobody waits.
    pub patience: u32,
    /// How long to rest before it.
    pub rest: Duration,
    /// Whether it is to be short.
    pub short: bool,
}

impl Way {
    /// As it is drawn.
    pub const DRAWN: Way = Way::patient(u32::MAX);

    /// At once, with so much patience at most.
    const fn patient(patience: u32) -> Way {
        Way { patience, rest: Duration::ZERO, short: false }
    }
}

impl Company {
    /// Of a run that has not begun; with how much of its time it takes, where it is known what exercises its test.
    pub fn new(parts: Option<Parts>) -> Company {
        Company { parts, ..Company::default() }
    }

    /// How much of its time a run takes: in company another part once its test is exercised than until then.
    pub fn part(&self, time: Duration) -> Duration {
        match self.parts {
            Some(parts) if self.met + self.apart > Duration::ZERO => {
                time * if self.has_enough { parts.exercised } else { parts.seeking } / 100
            }
            _ => time,
        }
    }

    /// Notes what a dispatch has cost, and how long it took; `whole` is with its rest and all that the host did for it: that is
    /// shared out between dispatches with meetings and without.
    pub fn note(&mut self, way: Way, cost: Duration, took: Duration, whole: Duration) {
        // Whoever has rested is let in at once, and so learns nothing of others.
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
            self.keeps_apart = match self.keeps_apart {
                true => apart < met,
                false => met >= apart + STRETCH * others,
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
            Way { patience: PATIENCE, rest: (self.cost * REST).min(MOST_REST), short: true }
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
    fn a_run_by_itself_does_as_it_is_told() {
        let mut company = Company::default();
        assert_eq!(company.way(), Way::patient(PATIENCE));
        for _ in 0..20 {
            // Of two processors.
            company.note(Way::DRAWN, millis(18), millis(10), millis(10));
            assert_eq!(company.way(), Way::DRAWN);
        }
        // One dispatch that had to wait is no company.
        company.note(Way::DRAWN, millis(18), millis(30), millis(30));
        assert_eq!(company.way(), Way::DRAWN);
    }

    /// So many dispatches among others, of which one with a meeting takes longer, and the part of the time that went to meetings.
    fn in_company(company: &mut Company, dispatches: u32) -> f64 {
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
    fn in_company_most_of_the_time_goes_to_meetings_until_there_is_enough_and_waits_are_short() {
        let mut company = Company::new(Some(PARTS));
        let share = in_company(&mut company, 400);
        assert!((0.7..0.8).contains(&share), "{share}");
        company.has_enough = true;
        // What went to meetings is won back.
        in_company(&mut company, 4000);
        let share = in_company(&mut company, 400);
        assert!((0.2..0.3).contains(&share), "{share}");
        // When the others have gone, all is as before.
        for _ in 0..2000 {
            company.note(company.way(), millis(9), millis(10), millis(10));
        }
        assert_eq!(company.way(), Way::DRAWN);
    }

    #[test]
    fn whoever_has_rested_learns_nothing_of_others() {
        let mut company = Company::default();
        company.note(Way::patient(PATIENCE), millis(1), millis(10), millis(10));
        let way = company.way();
        assert!(way.short, "{way:?}");
        // Partners that were let in at once.
        (0..50).for_each(|_| company.note(way, millis(20), millis(10), millis(10)));
        assert_ne!(company.way(), Way::DRAWN);
    }

    #[test]
    fn a_run_in_company_is_long_until_its_test_is_exercised() {
        let time = millis(100);
        let mut company = Company::new(Some(PARTS));
        assert_eq!(company.part(time), time);
        company.note(Way::DRAWN, millis(10), millis(10), millis(10));
        company.has_enough = true;
        assert_eq!(company.part(time), time, "nobody is there");
        let mut company = Company::new(Some(PARTS));
        company.note(Way::DRAWN, millis(1), millis(10), millis(10));
        assert_eq!(company.part(time), time * 5 / 2);
        company.has_enough = true;
        assert_eq!(company.part(time), time / 2);
        // Nobody knows when it would be exercised.
        let mut company = Company::new(None);
        company.note(Way::DRAWN, millis(1), millis(10), millis(10));
        assert_eq!(company.part(time), time);
    }
}
