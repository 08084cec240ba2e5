//! The course of a run: outcomes of consecutive stretches of dispatches, from which drift is told.

use litmus::Histogram;

use crate::count::Counter;

/// Stretches that are kept at most; as many again are halved to them, so that a run of any length has 32 to 64.
const MOST: usize = 64;

/// What was seen by the end of every so many dispatches.
#[derive(Clone, Debug)]
pub(crate) struct Stretches {
    /// Dispatches of a stretch.
    each: u64,
    /// Counts since the run began, at the end of each stretch.
    marks: Vec<Histogram>,
}

impl Stretches {
    /// None yet.
    pub fn new() -> Stretches {
        Stretches { each: 1, marks: Vec::new() }
    }

    /// Notes that `kept` dispatches were counted by now.
    pub fn note(&mut self, kept: u64, counter: &Counter) {
        if kept == 0 || !kept.is_multiple_of(self.each) {
            return;
        }
        self.marks.push(counter.histogram());
        if self.marks.len() >= MOST {
            self.each *= 2;
            let mut second = false;
            self.marks.retain(|_| {
                second = !second;
                !second
            });
        }
    }

    /// The counts of each stretch alone.
    pub fn histograms(&self) -> Vec<Histogram> {
        let mut before = &Histogram::default();
        self.marks
            .iter()
            .map(|mark| {
                let mut own = Histogram::default();
                for (outcome, count) in &mark.counts {
                    let earlier = before.counts.get(outcome).copied().unwrap_or(0);
                    if *count > earlier {
                        own.add(outcome.clone(), count - earlier);
                    }
                }
                before = mark;
                own
            })
            .collect()
    }
}
