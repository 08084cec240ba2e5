//! `tune`: looks for the stress under which a device shows most of given tests, and writes it as a preset.

use std::time::{Duration, Instant};

use campaign::measure::{self, Subject, Trial};
use campaign::targets::{self, Target};
use rand::Rng;
use results::bench::Counts;
use results::statistics::Proportion;
use runner::Stress;
use runner::tune::Candidates;

use crate::arguments::Tune;
use crate::exit::{Failure, Outcome};
use crate::output::{Data, say, write_file};

/// Relaxed tests that stand for the families: what they show, their synchronized siblings could have shown.
const MUTANTS: [&str; 4] = ["sb/SB+rlx-rlx", "r/R+rlx-rlx", "mp/MP+early-read", "coherence/CoRR+alias"];
/// The same for GPUs, which reorder more than stores and later loads.
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
/// Candidates that are looked at together: a worker lives for them all.
const TOGETHER: usize = 6;
/// How many of them get a close look at most.
const PROMISING: usize = 2;
/// A first look at a candidate, for each test.
const LOOK: Duration = Duration::from_millis(60);
/// A close look.
const CLOSE_LOOK: Duration = Duration::from_millis(200);
/// The part of the time for candidates drawn at random; what is left after the comparison goes to neighbours.
const RANDOM_PART: f64 = 0.45;
/// The part of the time that ends the search: the best candidate is measured again beside the device's own preset, since
/// the best of many is partly luck.
const COMPARISON_PART: f64 = 0.15;
/// How often the two are measured in turn.
const COMPARISONS: u64 = 5;
/// How long trials may take beyond their time: for starting a worker, and for building the kernels of each.
const OVERHEAD: Duration = Duration::from_secs(3);
const BUILDING: Duration = Duration::from_millis(200);

/// A stress with what was seen under it, by test.
#[derive(Clone)]
struct Measured {
    stress: Stress,
    counts: Vec<Counts>,
}

impl Measured {
    /// The sum over the tests of ln(1 + weak a second), half as much of interleaved ones, and a tenth as much of instances:
    /// a test that shows ten times as much counts as much as any other that does, however rare its outcomes are. What is
    /// weak is what a search is for; the others lead it where there is nothing weak yet.
    fn score(&self) -> f64 {
        self.score_by(|count, _| count as f64)
    }

    /// The score if every rate were at the upper end of its interval.
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

    fn add(&mut self, more: &Measured) {
        for (counts, more) in self.counts.iter_mut().zip(&more.counts) {
            counts.add(more);
        }
    }
}

/// Runs the command.
///
/// # Errors
/// When a test or the device is not there, or the preset cannot be written.
pub fn tune(arguments: &Tune, quiet: bool) -> Result<Outcome, Failure> {
    if arguments.out.extension().is_none_or(|extension| extension != "toml") {
        return Err(Failure::input_message(format!("{}: a preset is a .toml file", arguments.out.display())));
    }
    let devices: Vec<String> = arguments.device.iter().cloned().collect();
    let targets = targets::targets(&devices, None, &say)?;
    targets::refuse_compile_only(&targets)?;
    let Some(target) = targets.first() else { return Err(Failure::environment_message("no device")) };
    let capabilities = &target.listed.capabilities;
    let subjects = match arguments.tests.is_empty() {
        false => Subject::of_arguments(&arguments.tests)?,
        true if capabilities.is_cpu => Subject::of_arguments(&MUTANTS)?,
        true => Subject::of_arguments(&MUTANTS_OF_GPUS)?,
    };
    let mut first = Vec::with_capacity(arguments.from.len());
    for name in &arguments.from {
        first.push(targets::stress_for(Some(&targets::stress(name)?), &target.listed, &say)?);
    }
    let seed = arguments.seed.unwrap_or_else(|| rand::rng().next_u32().into());
    let mut search = Search {
        target,
        subjects: &subjects,
        started: Instant::now(),
        time: arguments.time,
        trials: 0,
        dropped: 0,
        seed,
    };
    let (best, own) = search.go(&first, quiet)?;
    let text = search.preset(&best, &own, seed)?;
    write_file(&arguments.out, text.as_bytes())?;
    let (better, before) = (best.score(), own.score());
    Data::new().print(&format!(
        "{}: score {better:.2}, {:.2} under the preset `{}`; {} candidates, {} of them dropped at the first look\n",
        arguments.out.display(),
        before,
        own.stress.name,
        search.trials,
        search.dropped
    ))?;
    Ok(Outcome::Success)
}

struct Search<'a> {
    target: &'a Target,
    subjects: &'a [Subject],
    started: Instant,
    time: Duration,
    /// Candidates tried, and those of them that had no close look.
    trials: u32,
    dropped: u32,
    seed: u64,
}

impl Search<'_> {
    /// The best stress found and the device's own preset, both measured side by side.
    fn go(&mut self, first: &[Stress], quiet: bool) -> Result<(Measured, Measured), Failure> {
        let own = self.target.stress.clone();
        let mut candidates = Candidates::new(self.seed, &self.target.listed.capabilities, &own);
        let mut best = self.measure(&own, CLOSE_LOOK)?;
        if best.counts.iter().all(|counts| counts.instances == 0) {
            return Err(Failure::environment_message("none of the tests runs on the device"));
        }
        if !quiet {
            say(&format!("{}: {}", own.name, self.told(&best)));
        }
        for close in self.measure_all(first, CLOSE_LOOK)? {
            self.trials += 1;
            if !quiet {
                say(&format!("{}: {}", close.stress.name, self.told(&close)));
            }
            if close.score() > best.score() {
                best = close;
            }
        }
        while self.spent() < 1.0 - COMPARISON_PART {
            let draw = |_| match self.spent() < RANDOM_PART {
                true => candidates.random(),
                false => candidates.neighbour(&best.stress),
            };
            let drawn: Vec<Stress> = (0..TOGETHER).map(draw).collect();
            let mut looks = self.measure_all(&drawn, LOOK)?;
            self.trials += TOGETHER as u32;
            looks.retain(|look| look.best_case() >= best.score());
            looks.sort_by(|left, right| right.score().total_cmp(&left.score()));
            looks.truncate(PROMISING);
            self.dropped += (TOGETHER - looks.len()) as u32;
            let promising: Vec<Stress> = looks.into_iter().map(|look| look.stress).collect();
            for close in self.measure_all(&promising, CLOSE_LOOK)? {
                if close.score() > best.score() {
                    best = close;
                    if !quiet {
                        say(&format!("{:3.0} %: {}", 100.0 * self.spent(), self.told(&best)));
                    }
                }
            }
        }
        let mut sums: Option<(Measured, Measured)> = None;
        for _ in 0..COMPARISONS {
            let pair = (self.measure(&best.stress, CLOSE_LOOK)?, self.measure(&own, CLOSE_LOOK)?);
            match &mut sums {
                None => sums = Some(pair),
                Some((of_best, of_own)) => {
                    of_best.add(&pair.0);
                    of_own.add(&pair.1);
                }
            }
        }
        let (of_best, of_own) = sums.unwrap_or_else(|| (best.clone(), best));
        // Luck alone is no reason to change.
        Ok(if of_best.score() > of_own.score() { (of_best, of_own) } else { (of_own.clone(), of_own) })
    }

    /// The score, and the weak outcomes a second of each test.
    fn told(&self, measured: &Measured) -> String {
        let of = |(subject, counts): (&Subject, &Counts)| {
            let name = subject.id.rsplit('/').next().unwrap_or_default();
            format!("{name} {:.0}", counts.per_second(counts.weak))
        };
        let weak: Vec<String> = self.subjects.iter().zip(&measured.counts).map(of).collect();
        format!("score {:.2}; weak a second: {}", measured.score(), weak.join(", "))
    }

    /// Which part of the time is over.
    fn spent(&self) -> f64 {
        self.started.elapsed().as_secs_f64() / self.time.as_secs_f64().max(1e-3)
    }

    fn measure(&self, stress: &Stress, time: Duration) -> Result<Measured, Failure> {
        let all = self.measure_all(std::slice::from_ref(stress), time)?;
        let nothing =
            || Measured { stress: stress.clone(), counts: vec![Counts::default(); self.subjects.len()] };
        Ok(all.into_iter().next().unwrap_or_else(nothing))
    }

    /// All tests under each stress, one after another in a worker that lives for all of them.
    fn measure_all(&self, stresses: &[Stress], time: Duration) -> Result<Vec<Measured>, Failure> {
        let trials: Vec<Trial<'_>> = stresses
            .iter()
            .flat_map(|stress| {
                self.subjects.iter().map(move |subject| Trial { subject, stress, time, seed: self.seed })
            })
            .collect();
        let count = u32::try_from(trials.len()).unwrap_or(u32::MAX);
        let limit = OVERHEAD + (time + BUILDING).saturating_mul(count);
        let ended = measure::run(self.target, &trials, limit)?;
        let counts = trials.iter().zip(ended).map(|(trial, seen)| match seen {
            Ok(seen) => trial.subject.counts(&seen),
            // A candidate that breaks a run is no candidate; one whose tests are skipped shows nothing.
            Err(_) => Counts::default(),
        });
        let counts: Vec<Counts> = counts.collect();
        let measured = |(stress, counts): (&Stress, &[Counts])| Measured {
            stress: stress.clone(),
            counts: counts.to_vec(),
        };
        Ok(stresses.iter().zip(counts.chunks(self.subjects.len().max(1))).map(measured).collect())
    }

    /// The text of the preset, its evidence in comments.
    fn preset(&self, best: &Measured, own: &Measured, seed: u64) -> Result<String, Failure> {
        let identity = &self.target.listed.identity;
        let mut text = format!(
            "# For {} ({} {}), found by `vk-litmus tune --time {} --seed {seed}`: {} candidates.\n\
             # Millions a second under this stress, and under the preset `{}` in turn with it ({} s each):\n",
            identity.name,
            identity.driver_name,
            identity.driver_info.trim(),
            humantime::format_duration(self.time),
            self.trials,
            own.stress.name,
            COMPARISONS as f64 * CLOSE_LOOK.as_secs_f64(),
        );
        for ((subject, here), there) in self.subjects.iter().zip(&best.counts).zip(&own.counts) {
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
