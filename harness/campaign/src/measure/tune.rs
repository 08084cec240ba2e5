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

use super::{MeasuredTest, Measurement, RelaxedSubject, environments};
use crate::kinds::litmus::plan::LitmusPlan;
use crate::targets::{self, DeviceTarget, MessageSink};
use crate::{Failure, models};

/// Relaxed tests, one for each family. A stress that shows their outcomes would also show violations of their
/// synchronized variants.
const RELAXED_TESTS: [&str; 4] = ["sb/SB+rlx-rlx", "r/R+rlx-rlx", "mp/MP+early-read", "coherence/CoRR+alias"];
/// The same for GPUs, which also reorder other pairs of accesses than store and later load.
const RELAXED_GPU_TESTS: [&str; 8] = [
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
const BATCH_SIZE: usize = 6;
/// The maximum number of these that are measured again for longer.
const MAX_PROMISING: usize = 2;
/// Duration of a first measurement of a candidate, for each test.
const SHORT_MEASUREMENT: Duration = Duration::from_millis(60);
/// Duration of a longer measurement.
const LONG_MEASUREMENT: Duration = Duration::from_millis(200);
/// The number of tests up to which these durations apply.
const FULL_TIME_TESTS: f64 = 8.0;
const MIN_MEASUREMENT: Duration = Duration::from_millis(20);
/// Fraction of the time for the first measurement, which determines the duration of a turn.
const FIRST_MEASUREMENT_SHARE: f64 = 0.125;
/// Fraction of the time after which candidates are neighbours of the best instead of random.
const RANDOM_SHARE: f64 = 0.45;
/// Fraction of the time for measuring the best candidate again, alternating with the device's own preset. The
/// best of many measurements is biased upwards. The validation tests get the same time again.
const COMPARISON_SHARE: f64 = 0.15;
/// The maximum number of alternations.
const MAX_COMPARISONS: u32 = 5;
/// Overhead of a measurement for building kernels. A time limit below this for one test is refused.
const BUILD_OVERHEAD: Duration = Duration::from_millis(200);

/// A stress with its counts for each test.
#[derive(Clone)]
struct MeasuredStress {
    stress: Stress,
    counts: Vec<Counts>,
}

impl MeasuredStress {
    /// Sums ln(1 + rate) over the tests: weak outcomes with weight 1, interleaved ones 0.5, instances 0.1.
    ///
    /// The logarithm makes a tenfold increase count the same for every test, however rare its outcomes. The
    /// search maximizes weak outcomes; the other terms guide it while there are none.
    fn score(&self) -> f64 {
        self.score_by(|count, _| count as f64)
    }

    /// Returns the score with every rate at the upper end of its confidence interval.
    fn upper_score(&self) -> f64 {
        self.score_by(|count, instances| Proportion::new(count, instances).interval().high * instances as f64)
    }

    fn score_by(&self, estimate: impl Fn(u64, u64) -> f64) -> f64 {
        let rate_score = |counts: &Counts, count: u64| {
            let estimate = if counts.instances == 0 { 0.0 } else { estimate(count, counts.instances) };
            if counts.seconds > 0.0 { (estimate / counts.seconds).ln_1p() } else { 0.0 }
        };
        let weighted_counts =
            |counts: &Counts| [(counts.weak, 1.0), (counts.interleaved, 0.5), (counts.instances, 0.1)];
        let weighted_scores =
            |counts| weighted_counts(counts).map(|(count, weight)| weight * rate_score(counts, count));
        self.counts.iter().flat_map(weighted_scores).sum()
    }

    /// Returns the geometric mean of 1 + weak outcomes per second over the tests, minus 1.
    fn typical_rate(&self) -> f64 {
        let logarithms = self.counts.iter().map(|counts| counts.per_second(counts.weak).ln_1p());
        (logarithms.sum::<f64>() / self.counts.len().max(1) as f64).exp_m1()
    }

    fn add(&mut self, other: &MeasuredStress) {
        for (counts, more) in self.counts.iter_mut().zip(&other.counts) {
            counts.add(more);
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct TuneOptions<'a> {
    /// The tests as command-line arguments; a fixed selection if there is neither a test nor a suite.
    pub tests: &'a [String],
    /// A suite. One half of its relaxed tests guides the search, the other half validates the result.
    pub suite: Option<&'a str>,
    /// The first candidates, as presets or files.
    pub initial_stresses: &'a [String],
    /// Time limit of the search.
    pub time: Duration,
    pub seed: u64,
}

/// The best preset of a search.
#[derive(Clone, Debug)]
pub struct TuneResult {
    /// The preset file, with the measurements as comments.
    pub preset: String,
    pub summary: String,
}

/// Searches for the best stress of a device; `on_progress` gets messages.
///
/// # Errors
/// If a test or a stress does not exist, the time is too short, or no test runs.
pub fn tune(
    target: DeviceTarget,
    options: &TuneOptions<'_>,
    on_message: MessageSink<'_>,
    on_progress: MessageSink<'_>,
) -> Result<TuneResult, Failure> {
    let measurement_count = if options.suite.is_some() { 6 } else { 4 };
    let least = (MIN_MEASUREMENT + BUILD_OVERHEAD) * measurement_count;
    if options.time < least {
        let least = humantime::format_duration(least);
        return Err(Failure::input_message(format!(
            "`--time` is too short: the search takes at least {least}"
        )));
    }
    let loaded_tests = match options.suite {
        Some(suite) => environments::load_tests(&[], Some(suite))?,
        None => Vec::new(),
    };
    let plan = LitmusPlan::new(vec![target], loaded_tests, None, None, &|_, _| None)?;
    let Some(target) = plan.targets.first() else { return Err(Failure::environment_message("no device")) };
    let (subjects, validation) = match (options.suite, options.tests) {
        (Some(_), _) => split_by_family(RelaxedSubject::from_plan(&plan), options.seed)?,
        (None, []) if target.listed.capabilities.is_cpu => {
            (MeasuredTest::from_arguments(&RELAXED_TESTS, target)?, Vec::new())
        }
        (None, []) => (MeasuredTest::from_arguments(&RELAXED_GPU_TESTS, target)?, Vec::new()),
        (None, named) => (MeasuredTest::from_arguments(named, target)?, Vec::new()),
    };
    let mut initial = Vec::with_capacity(options.initial_stresses.len());
    for name in options.initial_stresses {
        initial.push(targets::stress_for_device(
            Some(&targets::load_stress(name)?),
            &target.listed,
            on_message,
        )?);
    }
    let mut search = StressSearch {
        target,
        requested_count: subjects.len() + validation.len(),
        subjects,
        validation,
        counts_kills: options.suite.is_some(),
        started: Instant::now(),
        time: options.time,
        turn_time: Duration::ZERO,
        candidate_count: 0,
        dropped_count: 0,
        seed: options.seed,
    };
    let (best, own) = search.run_search(&initial, on_progress)?;
    if search.counts_kills { search.validate(best, own) } else { search.summarize(&best, &own) }
}

/// Splits relaxed tests by family into a training half and a validation half.
fn split_by_family(
    relaxed: Vec<RelaxedSubject>,
    seed: u64,
) -> Result<(Vec<MeasuredTest>, Vec<MeasuredTest>), Failure> {
    let mut families: BTreeMap<String, Vec<MeasuredTest>> = BTreeMap::new();
    for RelaxedSubject { subject, .. } in relaxed {
        let family = subject.id.split('/').next().unwrap_or_default();
        families.entry(models::text_hash(&format!("{seed} {family}"))).or_default().push(subject);
    }
    let (mut training, mut validation) = (Vec::new(), Vec::new());
    for family in families.into_values() {
        if training.len() <= validation.len() { &mut training } else { &mut validation }.extend(family);
    }
    match validation.is_empty() {
        true => Err(Failure::input_message("the suite has relaxed tests of fewer than two families")),
        false => Ok((training, validation)),
    }
}

struct StressSearch<'a> {
    target: &'a DeviceTarget,
    /// The number of requested tests.
    requested_count: usize,
    subjects: Vec<MeasuredTest>,
    validation: Vec<MeasuredTest>,
    /// Counts the outcome of a test's question instead of weak outcomes.
    counts_kills: bool,
    started: Instant,
    time: Duration,
    /// Duration of measuring all tests under one stress.
    turn_time: Duration,
    /// The number of candidates, and of those without a longer measurement.
    candidate_count: u32,
    dropped_count: u32,
    seed: u64,
}

impl StressSearch<'_> {
    /// Returns the best stress and the device's own preset, measured in alternation.
    fn run_search(
        &mut self,
        initial: &[Stress],
        on_progress: MessageSink<'_>,
    ) -> Result<(MeasuredStress, MeasuredStress), Failure> {
        let own = self.target.stress.clone();
        let mut candidates = Candidates::new(self.seed, &self.target.listed.capabilities, &own);
        let mut best = self.measure_own_preset(&own)?;
        on_progress(&format!("{}: {}", own.name, self.format_scores(&best)));
        let comparisons = if self.validation.is_empty() { 1 } else { 2 };
        let end = self.time.saturating_sub(self.comparison_time() * comparisons);
        for stress in initial.iter().take(self.measurements_until(end)) {
            for measured in
                self.measure(&self.subjects, std::slice::from_ref(stress), LONG_MEASUREMENT, end)?
            {
                self.candidate_count += 1;
                on_progress(&format!("{}: {}", measured.stress.name, self.format_scores(&measured)));
                if measured.score() > best.score() {
                    best = measured;
                }
            }
        }
        loop {
            let batch = self.measurements_until(end).min(BATCH_SIZE);
            if batch == 0 {
                break;
            }
            let draw = |_| match self.spent_fraction() < RANDOM_SHARE {
                true => candidates.random(),
                false => candidates.neighbour(&best.stress),
            };
            let drawn: Vec<Stress> = (0..batch).map(draw).collect();
            let mut measured_batch = self.measure(&self.subjects, &drawn, SHORT_MEASUREMENT, end)?;
            self.candidate_count += batch as u32;
            measured_batch.retain(|look| look.upper_score() >= best.score());
            measured_batch.sort_by(|left, right| right.score().total_cmp(&left.score()));
            measured_batch.truncate(MAX_PROMISING.min(self.measurements_until(end).max(1)));
            self.dropped_count += (batch - measured_batch.len()) as u32;
            let promising: Vec<Stress> = measured_batch.into_iter().map(|look| look.stress).collect();
            for measured in self.measure(&self.subjects, &promising, LONG_MEASUREMENT, end)? {
                if measured.score() > best.score() {
                    best = measured;
                    on_progress(&format!(
                        "{:3.0} %: {}",
                        100.0 * self.spent_fraction(),
                        self.format_scores(&best)
                    ));
                }
            }
        }
        let (of_best, of_own) = self.compare_stresses(&self.subjects, &best.stress, &own, end)?;
        // A change needs a better score in the comparison too, not only in the search.
        Ok(if of_best.score() > of_own.score() { (of_best, of_own) } else { (of_own.clone(), of_own) })
    }

    /// Measures the device's own preset. Tests without instances are dropped, and the same fraction of the
    /// validation tests.
    fn measure_own_preset(&mut self, own: &Stress) -> Result<MeasuredStress, Failure> {
        let by_hash = |subject: &MeasuredTest| models::text_hash(&format!("{} {}", self.seed, subject.id));
        self.subjects.sort_by_cached_key(by_hash);
        self.validation.sort_by_cached_key(by_hash);
        let before = self.subjects.len();
        let limit = self.time.mul_f64(FIRST_MEASUREMENT_SHARE);
        let mut measured =
            self.measure_within(&self.subjects, std::slice::from_ref(own), LONG_MEASUREMENT, limit)?;
        let Some(mut measured) = measured.pop() else {
            return Err(Failure::input_message("no test to measure"));
        };
        let has_instances: Vec<bool> = measured.counts.iter().map(|counts| counts.instances > 0).collect();
        let mut flags = has_instances.iter();
        self.subjects.retain(|_| flags.next().is_some_and(|ran| *ran));
        measured.counts.retain(|counts| counts.instances > 0);
        if self.subjects.is_empty() {
            return Err(Failure::environment_message("none of the tests runs on the device"));
        }
        let kept_count = (self.validation.len() * self.subjects.len()).div_ceil(before);
        self.validation.truncate(kept_count);
        self.turn_time = self.started.elapsed();
        Ok(measured)
    }

    /// Returns the time for one comparison, at least one turn of each stress.
    fn comparison_time(&self) -> Duration {
        self.time.mul_f64(COMPARISON_SHARE).max(self.turn_time * 2)
    }

    /// Returns the number of measurements that fit before `end`.
    fn measurements_until(&self, end: Duration) -> usize {
        let remaining = end.saturating_sub(self.started.elapsed()).as_secs_f64();
        // The cast saturates.
        (remaining / self.turn_time.as_secs_f64().max(1e-3)) as usize
    }

    /// Measures two stresses in alternation, starting at `start`: once, then until the time is used up.
    fn compare_stresses(
        &self,
        subjects: &[MeasuredTest],
        best: &Stress,
        own: &Stress,
        start: Duration,
    ) -> Result<(MeasuredStress, MeasuredStress), Failure> {
        let stresses = if best == own { vec![own.clone()] } else { vec![own.clone(), best.clone()] };
        let end = start + self.comparison_time();
        let mut sums = self.measure(subjects, &stresses, LONG_MEASUREMENT, end)?;
        for _ in 1..MAX_COMPARISONS {
            if self.measurements_until(end) < stresses.len() {
                break;
            }
            let more = self.measure(subjects, &stresses, LONG_MEASUREMENT, end)?;
            sums.iter_mut().zip(&more).for_each(|(sum, more)| sum.add(more));
        }
        match (sums.pop(), sums.pop()) {
            (Some(best), Some(own)) => Ok((best, own)),
            (Some(own), None) => Ok((own.clone(), own)),
            _ => Err(Failure::environment_message("the comparison measured nothing")),
        }
    }

    /// Returns the result of a search without validation tests.
    fn summarize(&self, best: &MeasuredStress, own: &MeasuredStress) -> Result<TuneResult, Failure> {
        Ok(TuneResult {
            preset: self.format_preset(&self.subjects.iter().collect::<Vec<_>>(), best, own)?,
            summary: format!(
                "score {:.2}, {:.2} under the preset `{}`; {}\n",
                best.score(),
                own.score(),
                own.stress.name,
                self.describe_candidates()
            ),
        })
    }

    /// Validates the best stress with tests that the search did not use.
    fn validate(&self, best: MeasuredStress, own: MeasuredStress) -> Result<TuneResult, Failure> {
        let start = self.started.elapsed();
        let (others, others_own) =
            self.compare_stresses(&self.validation, &best.stress, &own.stress, start)?;
        // A stress that is worse on the validation tests was overfitted.
        let holds = others.typical_rate() >= others_own.typical_rate();
        let (written, written_others) = if holds { (&best, &others) } else { (&own, &others_own) };
        let describe = |what: &str, count: usize, best: &MeasuredStress, own: &MeasuredStress| {
            format!(
                "{count} tests {what}: typical kills per second {:.2}, and {:.2} under the preset `{}`",
                best.typical_rate(),
                own.typical_rate(),
                own.stress.name
            )
        };
        let training_text = describe("used for tuning", self.subjects.len(), &best, &own);
        let validation_text = describe("not used for tuning", self.validation.len(), &others, &others_own);
        let end = if holds {
            ""
        } else {
            "; the gain does not carry over to those, so the preset is written unchanged"
        };
        let together = |training: &MeasuredStress, validation: &MeasuredStress| MeasuredStress {
            stress: training.stress.clone(),
            counts: [training.counts.as_slice(), validation.counts.as_slice()].concat(),
        };
        let all: Vec<&MeasuredTest> = self.subjects.iter().chain(&self.validation).collect();
        let text =
            self.format_preset(&all, &together(written, written_others), &together(&own, &others_own))?;
        Ok(TuneResult {
            preset: format!(
                "# {training_text}.\n# {validation_text}{end}; \"weak\" counts condition outcomes.\n{text}"
            ),
            summary: format!("{}\n{training_text}\n{validation_text}{end}\n", self.describe_candidates()),
        })
    }

    /// Describes how many candidates were tried and how many tests were left out.
    fn describe_candidates(&self) -> String {
        let left_out = self.requested_count - self.subjects.len() - self.validation.len();
        let without = match left_out {
            0 => String::new(),
            _ => format!(
                "; {left_out} of {} tests are omitted: they do not run here, or the time is too short for \
                 them",
                self.requested_count
            ),
        };
        format!(
            "{} candidates, {} of them dropped after the first measurement{without}",
            self.candidate_count, self.dropped_count
        )
    }

    /// Formats the score and the weak outcomes per second of each test.
    fn format_scores(&self, measured: &MeasuredStress) -> String {
        let test_rate = |(subject, counts): (&MeasuredTest, &Counts)| {
            let name = subject.id.rsplit('/').next().unwrap_or_default();
            format!("{name} {:.0}", counts.per_second(counts.weak))
        };
        let weak: Vec<String> = self.subjects.iter().zip(&measured.counts).map(test_rate).collect();
        format!("score {:.2}; weak per second: {}", measured.score(), weak.join(", "))
    }

    /// Returns the fraction of the time that has passed.
    fn spent_fraction(&self) -> f64 {
        self.started.elapsed().as_secs_f64() / self.time.as_secs_f64().max(1e-3)
    }

    /// Returns the duration for each of `tests` tests, which is shorter for many.
    fn measurement_time(&self, time: Duration, tests: usize) -> Duration {
        let fraction = FULL_TIME_TESTS / tests.max(FULL_TIME_TESTS as usize) as f64;
        if self.counts_kills { time.mul_f64(fraction).max(MIN_MEASUREMENT) } else { time }
    }

    /// Measures all tests under each stress in one worker. Trials that did not start by `end` count nothing.
    fn measure(
        &self,
        subjects: &[MeasuredTest],
        stresses: &[Stress],
        time: Duration,
        end: Duration,
    ) -> Result<Vec<MeasuredStress>, Failure> {
        let turns = self.turn_time * u32::try_from(stresses.len()).unwrap_or(u32::MAX);
        let limit = end.saturating_sub(self.started.elapsed()).max(turns);
        self.measure_within(subjects, stresses, time, limit)
    }

    /// Like [`StressSearch::measure`]; trials that did not start within `limit` count nothing.
    fn measure_within(
        &self,
        subjects: &[MeasuredTest],
        stresses: &[Stress],
        time: Duration,
        limit: Duration,
    ) -> Result<Vec<MeasuredStress>, Failure> {
        if subjects.is_empty() || stresses.is_empty() {
            return Ok(Vec::new());
        }
        let time = self.measurement_time(time, subjects.len());
        let trials: Vec<Measurement<'_>> = stresses
            .iter()
            .flat_map(|stress| {
                subjects.iter().map(move |subject| Measurement { subject, stress, time, seed: self.seed })
            })
            .collect();
        let ended = super::run_trials(self.target, &trials, limit)?;
        let counts = trials.iter().zip(ended).map(|(trial, seen)| match seen {
            Ok(observation) if self.counts_kills => Counts {
                weak: trial.subject.count_kills(&observation),
                ..trial.subject.count_outcomes(&observation)
            },
            Ok(observation) => trial.subject.count_outcomes(&observation),
            // A candidate that breaks a run gets no counts, like one whose tests are skipped.
            Err(_) => Counts::default(),
        });
        let counts: Vec<Counts> = counts.collect();
        let measured = |(stress, counts): (&Stress, &[Counts])| MeasuredStress {
            stress: stress.clone(),
            counts: counts.to_vec(),
        };
        Ok(stresses.iter().zip(counts.chunks(subjects.len().max(1))).map(measured).collect())
    }

    /// Returns the preset file, with the measurements as comments.
    fn format_preset(
        &self,
        subjects: &[&MeasuredTest],
        best: &MeasuredStress,
        own: &MeasuredStress,
    ) -> Result<String, Failure> {
        let (seed, tests) = (self.seed, subjects.len().max(1));
        let identity = &self.target.listed.identity;
        let mut text = format!(
            "# For {} ({} {}), found by `vk-litmus tune --time {} --seed {seed}`: {} candidates.\n\
             # Millions a second under this stress, and under the preset `{}` in turn with it ({:.1} s each):\n",
            identity.name,
            identity.driver_name,
            identity.driver_info.trim(),
            humantime::format_duration(self.time),
            self.candidate_count,
            own.stress.name,
            best.counts.iter().map(|counts| counts.seconds).sum::<f64>() / tests as f64,
        );
        for ((subject, best_counts), own_counts) in subjects.iter().zip(&best.counts).zip(&own.counts) {
            let millions = |counts: &Counts, count| counts.per_second(count) / 1e6;
            let interval = Proportion::new(best_counts.weak, best_counts.instances).interval();
            text += &format!(
                "#   {}: instances {:.2} and {:.2}, interleaved {:.4} and {:.4}, weak {:.4} and {:.4} \
                 (share {:.3e} to {:.3e} with 95 %)\n",
                subject.id,
                millions(best_counts, best_counts.instances),
                millions(own_counts, own_counts.instances),
                millions(best_counts, best_counts.interleaved),
                millions(own_counts, own_counts.interleaved),
                millions(best_counts, best_counts.weak),
                millions(own_counts, own_counts.weak),
                interval.low,
                interval.high,
            );
        }
        Ok(text + &best.stress.to_toml().map_err(Failure::environment_error)?)
    }
}
