//! `tune`: searches for the stress that shows the most weak outcomes on a device, and writes it as a preset.
//!
//! Random search, then local search around the best candidate. The search keeps to its time limit: a first
//! measurement with the device's own preset determines the duration of a turn. Tests that do not fit are
//! dropped first, then candidates.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use results::bench::Counts;
use results::statistics::Proportion;
use runner::Stress;
use runner::tune::Candidates;

use super::{Measurement, Relaxed, Subject, environments};
use crate::kinds::litmus::plan::LitmusPlan;
use crate::targets::{self, DeviceTarget, Tell};
use crate::{Failure, choice};

/// Relaxed tests, one for each family. A stress that shows their outcomes would also show violations of their
/// synchronized variants.
const MUTANTS: [&str; 4] = ["sb/SB+rlx-rlx", "r/R+rlx-rlx", "mp/MP+early-read", "coherence/CoRR+alias"];
/// The same for GPUs, which also reorder other pairs of accesses than store and later load.
const MUTANTS_OF_GPUS: [&str; 8] = [
    "sb/SB+rlx-rlx",
    "mp/MP+rlx-rlx",
    "lb/LB+rlx-rlx",
    "s/S+rlx-rlx",
    "r/R+rlx-rlx",
    "2+2w/2+2W+rlx-rlx",
    "iriw/IRIW+rlx",
    "coherence/CoRR+rlx",
];
/// Candidates that are measured together, in one worker.
const TOGETHER: usize = 6;
/// The maximum number of these that are measured again for longer.
const PROMISING: usize = 2;
/// Duration of a first measurement of a candidate, for each test.
const LOOK: Duration = Duration::from_millis(60);
/// Duration of a longer measurement.
const CLOSE_LOOK: Duration = Duration::from_millis(200);
/// The number of tests up to which these durations apply.
const USUAL: f64 = 8.0;
const LEAST_LOOK: Duration = Duration::from_millis(20);
/// Fraction of the time for the first measurement, which determines the duration of a turn.
const FIRST_PART: f64 = 0.125;
/// Fraction of the time after which candidates are neighbours of the best instead of random.
const RANDOM_PART: f64 = 0.45;
/// Fraction of the time for measuring the best candidate again, alternating with the device's own preset. The
/// best of many measurements is biased upwards. The validation tests get the same time again.
const COMPARISON_PART: f64 = 0.15;
/// The maximum number of alternations.
const COMPARISONS: u32 = 5;
/// Overhead of a measurement for building kernels. A time limit below this for one test is refused.
const BUILDING: Duration = Duration::from_millis(200);

/// A stress with its counts for each test.
#[derive(Clone)]
struct Measured {
    stress: Stress,
    counts: Vec<Counts>,
}

impl Measured {
    /// Sums ln(1 + rate) over the tests: weak outcomes with weight 1, interleaved ones 0.5, instances 0.1.
    ///
    /// The logarithm makes a tenfold increase count the same for every test, however rare its outcomes. The
    /// search maximizes weak outcomes; the other terms guide it while there are none.
    fn score(&self) -> f64 {
        self.score_by(|count, _| count as f64)
    }

    /// Returns the score with every rate at the upper end of its confidence interval.
    fn best_case(&self) -> f64 {
        self.score_by(|count, instances| Proportion::new(count, instances).interval().high * instances as f64)
    }

    fn score_by(&self, estimate: impl Fn(u64, u64) -> f64) -> f64 {
        let of = |counts: &Counts, count: u64| {
            let estimate = if counts.instances == 0 { 0.0 } else { estimate(count, counts.instances) };
            if counts.seconds > 0.0 { (estimate / counts.seconds).ln_1p() } else { 0.0 }
        };
        let counted =
            |counts: &Counts| [(counts.weak, 1.0), (counts.interleaved, 0.5), (counts.instances, 0.1)];
        let weighed = |counts| counted(counts).map(|(count, weight)| weight * of(counts, count));
        self.counts.iter().flat_map(weighed).sum()
    }

    /// Returns the geometric mean of 1 + weak outcomes per second over the tests, minus 1.
    fn typical(&self) -> f64 {
        let logarithms = self.counts.iter().map(|counts| counts.per_second(counts.weak).ln_1p());
        (logarithms.sum::<f64>() / self.counts.len().max(1) as f64).exp_m1()
    }

    fn add(&mut self, more: &Measured) {
        for (counts, more) in self.counts.iter_mut().zip(&more.counts) {
            counts.add(more);
        }
    }
}

/// The options of a search.
#[derive(Clone, Copy, Debug)]
pub struct Tuning<'a> {
    /// The tests as command-line arguments; a fixed selection if there is neither a test nor a suite.
    pub tests: &'a [String],
    /// A suite. One half of its relaxed tests guides the search, the other half validates the result.
    pub suite: Option<&'a str>,
    /// The first candidates, as presets or files.
    pub from: &'a [String],
    /// Time limit of the search.
    pub time: Duration,
    /// The random seed.
    pub seed: u64,
}

/// The best preset of a search.
#[derive(Clone, Debug)]
pub struct Tuned {
    /// The preset file, with the measurements as comments.
    pub preset: String,
    /// A summary of the search.
    pub said: String,
}

/// Searches for the best stress of a device; `finds` gets progress messages.
///
/// # Errors
/// If a test or a stress does not exist, the time is too short, or no test runs.
pub fn tune(
    target: DeviceTarget,
    asked: &Tuning<'_>,
    tell: Tell<'_>,
    finds: Tell<'_>,
) -> Result<Tuned, Failure> {
    let looks = if asked.suite.is_some() { 6 } else { 4 };
    let least = (LEAST_LOOK + BUILDING) * looks;
    if asked.time < least {
        let least = humantime::format_duration(least);
        return Err(Failure::input_message(format!(
            "`--time` is too short: the search takes at least {least}"
        )));
    }
    let of_suite = match asked.suite {
        Some(suite) => environments::tests(&[], Some(suite))?,
        None => Vec::new(),
    };
    let plan = LitmusPlan::new(vec![target], of_suite, None, None, &|_, _| None)?;
    let Some(target) = plan.targets.first() else { return Err(Failure::environment_message("no device")) };
    let (subjects, unseen) = match (asked.suite, asked.tests) {
        (Some(_), _) => split_by_family(Relaxed::of_plan(&plan), asked.seed)?,
        (None, []) if target.listed.capabilities.is_cpu => {
            (Subject::of_arguments(&MUTANTS, target)?, Vec::new())
        }
        (None, []) => (Subject::of_arguments(&MUTANTS_OF_GPUS, target)?, Vec::new()),
        (None, named) => (Subject::of_arguments(named, target)?, Vec::new()),
    };
    let mut first = Vec::with_capacity(asked.from.len());
    for name in asked.from {
        first.push(targets::stress_for(Some(&targets::stress(name)?), &target.listed, tell)?);
    }
    let mut search = StressSearch {
        target,
        all: subjects.len() + unseen.len(),
        subjects,
        unseen,
        by_deaths: asked.suite.is_some(),
        started: Instant::now(),
        time: asked.time,
        turn: Duration::ZERO,
        trials: 0,
        dropped: 0,
        seed: asked.seed,
    };
    let (best, own) = search.go(&first, finds)?;
    if search.by_deaths { search.judged(best, own) } else { search.found(&best, &own) }
}

/// Splits relaxed tests by family into a training half and a validation half.
fn split_by_family(relaxed: Vec<Relaxed>, seed: u64) -> Result<(Vec<Subject>, Vec<Subject>), Failure> {
    let mut families: BTreeMap<String, Vec<Subject>> = BTreeMap::new();
    for Relaxed { subject, .. } in relaxed {
        let family = subject.id.split('/').next().unwrap_or_default();
        families.entry(choice::hash(&format!("{seed} {family}"))).or_default().push(subject);
    }
    let (mut learnt, mut unseen) = (Vec::new(), Vec::new());
    for family in families.into_values() {
        if learnt.len() <= unseen.len() { &mut learnt } else { &mut unseen }.extend(family);
    }
    match unseen.is_empty() {
        true => Err(Failure::input_message("the suite has relaxed tests of fewer than two families")),
        false => Ok((learnt, unseen)),
    }
}

struct StressSearch<'a> {
    target: &'a DeviceTarget,
    /// The number of requested tests.
    all: usize,
    subjects: Vec<Subject>,
    /// The validation half.
    unseen: Vec<Subject>,
    /// Counts the outcome of a test's question instead of weak outcomes.
    by_deaths: bool,
    started: Instant,
    time: Duration,
    /// Duration of measuring all tests under one stress.
    turn: Duration,
    /// The number of candidates, and of those without a longer measurement.
    trials: u32,
    dropped: u32,
    seed: u64,
}

impl StressSearch<'_> {
    /// Returns the best stress and the device's own preset, measured in alternation.
    fn go(&mut self, first: &[Stress], finds: Tell<'_>) -> Result<(Measured, Measured), Failure> {
        let own = self.target.stress.clone();
        let mut candidates = Candidates::new(self.seed, &self.target.listed.capabilities, &own);
        let mut best = self.first_look(&own)?;
        finds(&format!("{}: {}", own.name, self.told(&best)));
        let comparisons = if self.unseen.is_empty() { 1 } else { 2 };
        let end = self.time.saturating_sub(self.comparison_time() * comparisons);
        for stress in first.iter().take(self.looks_until(end)) {
            for close in self.measure(&self.subjects, std::slice::from_ref(stress), CLOSE_LOOK, end)? {
                self.trials += 1;
                finds(&format!("{}: {}", close.stress.name, self.told(&close)));
                if close.score() > best.score() {
                    best = close;
                }
            }
        }
        loop {
            let together = self.looks_until(end).min(TOGETHER);
            if together == 0 {
                break;
            }
            let draw = |_| match self.spent() < RANDOM_PART {
                true => candidates.random(),
                false => candidates.neighbour(&best.stress),
            };
            let drawn: Vec<Stress> = (0..together).map(draw).collect();
            let mut looks = self.measure(&self.subjects, &drawn, LOOK, end)?;
            self.trials += together as u32;
            looks.retain(|look| look.best_case() >= best.score());
            looks.sort_by(|left, right| right.score().total_cmp(&left.score()));
            looks.truncate(PROMISING.min(self.looks_until(end).max(1)));
            self.dropped += (together - looks.len()) as u32;
            let promising: Vec<Stress> = looks.into_iter().map(|look| look.stress).collect();
            for close in self.measure(&self.subjects, &promising, CLOSE_LOOK, end)? {
                if close.score() > best.score() {
                    best = close;
                    finds(&format!("{:3.0} %: {}", 100.0 * self.spent(), self.told(&best)));
                }
            }
        }
        let (of_best, of_own) = self.compared(&self.subjects, &best.stress, &own, end)?;
        // A change needs a better score in the comparison too, not only in the search.
        Ok(if of_best.score() > of_own.score() { (of_best, of_own) } else { (of_own.clone(), of_own) })
    }

    /// Measures the device's own preset. Tests without instances are dropped, and the same fraction of the
    /// validation tests.
    fn first_look(&mut self, own: &Stress) -> Result<Measured, Failure> {
        let by_lot = |subject: &Subject| choice::hash(&format!("{} {}", self.seed, subject.id));
        self.subjects.sort_by_cached_key(by_lot);
        self.unseen.sort_by_cached_key(by_lot);
        let before = self.subjects.len();
        let limit = self.time.mul_f64(FIRST_PART);
        let mut seen = self.measure_within(&self.subjects, std::slice::from_ref(own), CLOSE_LOOK, limit)?;
        let Some(mut seen) = seen.pop() else { return Err(Failure::input_message("no test to learn from")) };
        let ran: Vec<bool> = seen.counts.iter().map(|counts| counts.instances > 0).collect();
        let mut keep = ran.iter();
        self.subjects.retain(|_| keep.next().is_some_and(|ran| *ran));
        seen.counts.retain(|counts| counts.instances > 0);
        if self.subjects.is_empty() {
            return Err(Failure::environment_message("none of the tests runs on the device"));
        }
        let part = (self.unseen.len() * self.subjects.len()).div_ceil(before);
        self.unseen.truncate(part);
        self.turn = self.started.elapsed();
        Ok(seen)
    }

    /// Returns the time for one comparison, at least one turn of each stress.
    fn comparison_time(&self) -> Duration {
        self.time.mul_f64(COMPARISON_PART).max(self.turn * 2)
    }

    /// Returns the number of measurements that fit before `end`.
    fn looks_until(&self, end: Duration) -> usize {
        let left = end.saturating_sub(self.started.elapsed()).as_secs_f64();
        // The cast saturates.
        (left / self.turn.as_secs_f64().max(1e-3)) as usize
    }

    /// Measures two stresses in alternation, starting at `from`: once, then until the time is used up.
    fn compared(
        &self,
        subjects: &[Subject],
        best: &Stress,
        own: &Stress,
        from: Duration,
    ) -> Result<(Measured, Measured), Failure> {
        let both = if best == own { vec![own.clone()] } else { vec![own.clone(), best.clone()] };
        let end = from + self.comparison_time();
        let mut sums = self.measure(subjects, &both, CLOSE_LOOK, end)?;
        for _ in 1..COMPARISONS {
            if self.looks_until(end) < both.len() {
                break;
            }
            let more = self.measure(subjects, &both, CLOSE_LOOK, end)?;
            sums.iter_mut().zip(&more).for_each(|(sum, more)| sum.add(more));
        }
        match (sums.pop(), sums.pop()) {
            (Some(best), Some(own)) => Ok((best, own)),
            (Some(own), None) => Ok((own.clone(), own)),
            _ => Err(Failure::environment_message("the comparison measured nothing")),
        }
    }

    /// Returns the result of a search without validation tests.
    fn found(&self, best: &Measured, own: &Measured) -> Result<Tuned, Failure> {
        Ok(Tuned {
            preset: self.preset(&self.subjects.iter().collect::<Vec<_>>(), best, own)?,
            said: format!(
                "score {:.2}, {:.2} under the preset `{}`; {}\n",
                best.score(),
                own.score(),
                own.stress.name,
                self.tried()
            ),
        })
    }

    /// Validates the best stress with tests that the search did not use.
    fn judged(&self, best: Measured, own: Measured) -> Result<Tuned, Failure> {
        let from = self.started.elapsed();
        let (others, others_own) = self.compared(&self.unseen, &best.stress, &own.stress, from)?;
        // A stress that is worse on the validation tests was overfitted.
        let holds = others.typical() >= others_own.typical();
        let (written, written_others) = if holds { (&best, &others) } else { (&own, &others_own) };
        let of = |what: &str, count: usize, best: &Measured, own: &Measured| {
            format!(
                "{count} tests {what}: typical deaths a second {:.2}, and {:.2} under the preset `{}`",
                best.typical(),
                own.typical(),
                own.stress.name
            )
        };
        let learnt = of("used for tuning", self.subjects.len(), &best, &own);
        let judged = of("not used for tuning", self.unseen.len(), &others, &others_own);
        let end = if holds {
            ""
        } else {
            "; the gain does not carry over to those, so the preset is written unchanged"
        };
        let together = |seen: &Measured, unseen: &Measured| Measured {
            stress: seen.stress.clone(),
            counts: [seen.counts.as_slice(), unseen.counts.as_slice()].concat(),
        };
        let all: Vec<&Subject> = self.subjects.iter().chain(&self.unseen).collect();
        let text = self.preset(&all, &together(written, written_others), &together(&own, &others_own))?;
        Ok(Tuned {
            preset: format!("# {learnt}.\n# {judged}{end}; \"weak\" below is what tests ask about.\n{text}"),
            said: format!("{}\n{learnt}\n{judged}{end}\n", self.tried()),
        })
    }

    /// Describes how many candidates were tried and how many tests were left out.
    fn tried(&self) -> String {
        let left_out = self.all - self.subjects.len() - self.unseen.len();
        let without = match left_out {
            0 => String::new(),
            _ => format!(
                "; {left_out} of {} tests are omitted: they do not run here, or the time is too short for \
                 them",
                self.all
            ),
        };
        format!(
            "{} candidates, {} of them dropped after the first measurement{without}",
            self.trials, self.dropped
        )
    }

    /// Formats the score and the weak outcomes per second of each test.
    fn told(&self, measured: &Measured) -> String {
        let of = |(subject, counts): (&Subject, &Counts)| {
            let name = subject.id.rsplit('/').next().unwrap_or_default();
            format!("{name} {:.0}", counts.per_second(counts.weak))
        };
        let weak: Vec<String> = self.subjects.iter().zip(&measured.counts).map(of).collect();
        format!("score {:.2}; weak a second: {}", measured.score(), weak.join(", "))
    }

    /// Returns the fraction of the time that has passed.
    fn spent(&self) -> f64 {
        self.started.elapsed().as_secs_f64() / self.time.as_secs_f64().max(1e-3)
    }

    /// Returns the duration for each of `tests` tests, which is shorter for many.
    fn look(&self, time: Duration, tests: usize) -> Duration {
        let part = USUAL / tests.max(USUAL as usize) as f64;
        if self.by_deaths { time.mul_f64(part).max(LEAST_LOOK) } else { time }
    }

    /// Measures all tests under each stress in one worker. Trials that did not start by `end` count nothing.
    fn measure(
        &self,
        subjects: &[Subject],
        stresses: &[Stress],
        time: Duration,
        end: Duration,
    ) -> Result<Vec<Measured>, Failure> {
        let turns = self.turn * u32::try_from(stresses.len()).unwrap_or(u32::MAX);
        let limit = end.saturating_sub(self.started.elapsed()).max(turns);
        self.measure_within(subjects, stresses, time, limit)
    }

    /// Like [`StressSearch::measure`]; trials that did not start within `limit` count nothing.
    fn measure_within(
        &self,
        subjects: &[Subject],
        stresses: &[Stress],
        time: Duration,
        limit: Duration,
    ) -> Result<Vec<Measured>, Failure> {
        if subjects.is_empty() || stresses.is_empty() {
            return Ok(Vec::new());
        }
        let time = self.look(time, subjects.len());
        let trials: Vec<Measurement<'_>> = stresses
            .iter()
            .flat_map(|stress| {
                subjects.iter().map(move |subject| Measurement { subject, stress, time, seed: self.seed })
            })
            .collect();
        let ended = super::run(self.target, &trials, limit)?;
        let counts = trials.iter().zip(ended).map(|(trial, seen)| match seen {
            Ok(seen) if self.by_deaths => {
                Counts { weak: trial.subject.deaths(&seen), ..trial.subject.counts(&seen) }
            }
            Ok(seen) => trial.subject.counts(&seen),
            // A candidate that breaks a run gets no counts, like one whose tests are skipped.
            Err(_) => Counts::default(),
        });
        let counts: Vec<Counts> = counts.collect();
        let measured = |(stress, counts): (&Stress, &[Counts])| Measured {
            stress: stress.clone(),
            counts: counts.to_vec(),
        };
        Ok(stresses.iter().zip(counts.chunks(subjects.len().max(1))).map(measured).collect())
    }

    /// Returns the preset file, with the measurements as comments.
    fn preset(&self, subjects: &[&Subject], best: &Measured, own: &Measured) -> Result<String, Failure> {
        let (seed, tests) = (self.seed, subjects.len().max(1));
        let identity = &self.target.listed.identity;
        let mut text = format!(
            "# For {} ({} {}), found by `vk-litmus tune --time {} --seed {seed}`: {} candidates.\n\
             # Millions a second under this stress, and under the preset `{}` in turn with it ({:.1} s each):\n",
            identity.name,
            identity.driver_name,
            identity.driver_info.trim(),
            humantime::format_duration(self.time),
            self.trials,
            own.stress.name,
            best.counts.iter().map(|counts| counts.seconds).sum::<f64>() / tests as f64,
        );
        for ((subject, here), there) in subjects.iter().zip(&best.counts).zip(&own.counts) {
            let millions = |counts: &Counts, count| counts.per_second(count) / 1e6;
            let interval = Proportion::new(here.weak, here.instances).interval();
            text += &format!(
                "#   {}: instances {:.2} and {:.2}, interleaved {:.4} and {:.4}, weak {:.4} and {:.4} \
                 (share {:.3e} to {:.3e} with 95 %)\n",
                subject.id,
                millions(here, here.instances),
                millions(there, there.instances),
                millions(here, here.interleaved),
                millions(there, there.interleaved),
                millions(here, here.weak),
                millions(there, there.weak),
                interval.low,
                interval.high,
            );
        }
        Ok(text + &best.stress.to_toml().map_err(Failure::environment_error)?)
    }
}
