//! Explains an undecided shader: the limit that stopped the model, and the option that raises it.

use analysis::refusal_text;
use entry_point::{AnalysisOptions, DeadlinePredicate, Problem, Refusal, WalkLimit};
use model::Budget;
use spirv_reader::SourcePosition;
use symbolic::ModelQuery;

use super::{EntryPointCheck, ModelAnswer};
use crate::shader::shader_analysis::ChosenEntryPoint;
use crate::time_limit::stop_after;

/// Factor for the time limit that is suggested.
const SUGGESTED_TIMEOUT_FACTOR: u32 = 6;
/// A budget that shows only whether the model accepts a kernel.
const ACCEPTANCE_CHECK_STEPS: u64 = 100;
/// Loop bounds to try, the largest first.
const LOOP_BOUNDS: [u32; 4] = [8, 4, 2, 1];

/// Describes why the model cannot answer a query; the text follows "has no answer".
pub fn describe_refusal(refusal: &Refusal) -> String {
    match (&refusal.what, refusal.place) {
        (Problem::Invocations { .. }, _) => " on a grid of this size".to_owned(),
        (what, SourcePosition::Line(line)) => {
            format!(": line {line}: {}", refusal_text(&what.clone().located_at(SourcePosition::Module)))
        }
        (what, _) => format!(": {}", refusal_text(&what.clone().located_at(SourcePosition::Module))),
    }
}

impl EntryPointCheck<'_> {
    /// Returns the limit that stopped the model and the option that raises it; None if no option helps.
    pub(super) fn describe_limit(
        &self,
        chosen: &ChosenEntryPoint<'_>,
        answered: Result<&ModelAnswer, &Refusal>,
    ) -> Option<String> {
        let options = &chosen.options;
        let (why, option) = match answered {
            Ok(Ok(answer)) if answer.line.cut > 0 => {
                let line = &answer.line;
                let why = format!("the model cut off runs after {} iterations of a loop", line.bound);
                (why, format!("`--unroll {}` continues them", 2 * line.bound))
            }
            Ok(Ok(_)) => self.time_limit_texts(),
            Ok(Err(why)) => (format!("the model cannot be used: {why}"), self.suggest_loop_bound(options)),
            Err(Refusal {
                what: Problem::OutOfTime | Problem::LongLoop { .. } | Problem::TooFewSchedules { .. },
                ..
            }) => self.time_limit_texts(),
            Err(Refusal { what: Problem::Invocations { bound, .. }, .. }) => {
                let why = format!("the model supports at most {bound} invocations");
                (why, self.suggest_grid(options, *bound))
            }
            Err(Refusal {
                what: Problem::Budget { what, bound } | Problem::Exhausted { what, bound, .. },
                place,
            }) => {
                let place = match place {
                    SourcePosition::Line(line) => format!(" at line {line}"),
                    SourcePosition::Word(_) | SourcePosition::Module => String::new(),
                };
                (
                    format!("the model supports at most {bound} {what}{place}"),
                    self.suggest_loop_bound(options),
                )
            }
            Err(Refusal { what, place }) => {
                let at = match place {
                    SourcePosition::Line(line) => format!("line {line}: "),
                    SourcePosition::Word(_) | SourcePosition::Module => String::new(),
                };
                let why = refusal_text(&what.clone().located_at(SourcePosition::Module));
                return Some(format!("unknown: the model cannot be used: {at}{why}"));
            }
        };
        Some(format!("unknown: {why}; {option}"))
    }

    /// Describes the limit that stopped the interpreter.
    pub(super) fn describe_interpreter_limit(&self, refusal: &Refusal) -> String {
        match &refusal.what {
            Problem::Budget { bound, .. }
            | Problem::Exhausted { bound, .. }
            | Problem::Invocations { bound, .. } => {
                format!("unknown: the execution of the whole grid does not end within {bound} steps")
            }
            Problem::LongLoop { limit: WalkLimit::Steps(bound), .. } => {
                let place = match refusal.place {
                    SourcePosition::Line(line) => format!(", because of the loop at line {line}"),
                    SourcePosition::Word(_) | SourcePosition::Module => String::new(),
                };
                format!("unknown: the execution of the whole grid does not end within {bound} steps{place}")
            }
            _ => {
                let (why, option) = self.time_limit_texts();
                format!("unknown: {why}; {option}")
            }
        }
    }

    /// Returns the texts for a reached time limit.
    fn time_limit_texts(&self) -> (String, String) {
        let seconds = (self.check_options.timeout * SUGGESTED_TIMEOUT_FACTOR).as_secs().max(1);
        (
            "the time limit of the model was reached".to_owned(),
            format!("`--timeout {seconds}s` gives it more time"),
        )
    }

    /// Suggests the largest loop bound with which the model accepts the kernel.
    fn suggest_loop_bound(&self, options: &AnalysisOptions) -> String {
        let never_stop = || false;
        let until = Some(DeadlinePredicate::new(stop_after(self.check_options.timeout / 2)));
        let is_accepted = |bodies: &&u32| {
            let options =
                AnalysisOptions { unroll: Some(**bodies), deadline: until.clone(), ..options.clone() };
            let Ok(lifted) = symbolic::lift(self.entry.module, &options) else { return false };
            let budget = Budget::until(&never_stop).with_step_limit(ACCEPTANCE_CHECK_STEPS);
            let query = ModelQuery { budget, decide_race: true, decide_question: true, locate_race: false };
            symbolic::answer_with_model(&lifted, self.entry.model, &query).is_ok()
        };
        let is_below_bound = |bodies: &&u32| options.unroll.is_none_or(|bound| **bodies < bound);
        match LOOP_BOUNDS.iter().filter(is_below_bound).find(is_accepted) {
            Some(1) => "`--unroll 1` analyzes the first iteration of each loop".to_owned(),
            Some(bodies) => {
                format!("`--unroll {bodies}` analyzes the first {bodies} iterations of each loop")
            }
            None => "a smaller `--grid`, or smaller constants in the shader, make it applicable".to_owned(),
        }
    }

    /// Suggests the largest grid that the model accepts.
    fn suggest_grid(&self, options: &AnalysisOptions, bound: usize) -> String {
        let until = Some(DeadlinePredicate::new(stop_after(self.check_options.timeout)));
        let options = AnalysisOptions { grid: Some([1, 1, 1]), deadline: until, ..options.clone() };
        match symbolic::lift(self.entry.module, &options) {
            Err(Refusal { what: Problem::Invocations { .. }, .. }) => {
                "one workgroup alone exceeds the limit: reduce its size with `--spec` if specialization \
                 constants set it"
                    .to_owned()
            }
            Ok(lifted) if !lifted.invocations.is_empty() => {
                format!("`--grid {}` has this number", (bound / lifted.invocations.len()).max(1))
            }
            _ => format!("with `--grid 1` {}", self.suggest_loop_bound(&options)),
        }
    }
}
