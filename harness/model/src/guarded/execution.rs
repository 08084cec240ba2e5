//! The execution that a solution of the encoding describes, without the clauses.

use litmus::{Outcome, Value};
use solver::BitVector;

use super::encoding::GuardedEncoding;
use crate::candidate::CandidateExecution;
use crate::matrix::Matrix;
use crate::skeleton::{Skeleton, Tags};

impl<M: Matrix> GuardedEncoding<'_, M> {
    /// Returns the execution of the last solution: the events that execute, with their values.
    pub(super) fn describe_solution(&self) -> (Skeleton, CandidateExecution) {
        let (program, assignment) = (&self.program, self.solver.assignment());
        let executes = |event: &usize| assignment.bit(program.executes[*event]);
        let events: Vec<usize> = (0..program.skeleton.len()).filter(executes).collect();
        let number = |event: usize| events.binary_search(&event).ok().map(|number| number as u16);
        let mut whole = program.skeleton.clone();
        let holds = |name: &str, from: u16, to: u16| {
            assignment.bit(program.path_bit(name, usize::from(from), usize::from(to)))
        };
        whole.address_dependencies.retain(|(from, to)| holds("addr", *from, *to));
        whole.control_dependencies.retain(|(from, to)| holds("ctrl", *from, *to));
        whole.data_dependencies.retain(|(from, to)| holds("data", *from, *to));
        for (index, event) in (0..).zip(&mut whole.events) {
            if !holds("DECISIVE", index, index) {
                event.tags.remove(Tags::DECISIVE);
            }
        }
        whole.terminated = assignment.bit(program.ended);
        whole.is_truncated = assignment.bit(program.cut);
        let number_of = |value: &BitVector| Value(assignment.number(value) as u64);
        let stored = |event: usize| program.written[event].as_ref().map(number_of);
        let source = |event: &usize| {
            let (write, _) = self.sources.get(event)?.iter().find(|(_, source)| assignment.bit(*source))?;
            number(*write)
        };
        let order = |storage| -> Vec<usize> {
            let writes: Vec<usize> = self.writes_of(Some(storage)).into_iter().filter(executes).collect();
            let earlier = |write: usize| {
                writes
                    .iter()
                    .filter(|other| **other != write && self.is_before(&assignment, **other, write))
                    .count()
            };
            let mut ordered = writes.clone();
            ordered.sort_by_cached_key(|write| earlier(*write));
            ordered.into_iter().filter_map(number).map(usize::from).collect()
        };
        let candidate = CandidateExecution {
            rf: events.iter().map(source).collect(),
            co: program.skeleton.storages().into_iter().map(order).collect(),
            values: events.iter().map(|event| program.read[*event].as_ref().map(number_of)).collect(),
            thin_air: false,
            outcome: Outcome(self.final_values().map(|value| number_of(&value)).collect()),
        };
        (whole.restrict(&events, &stored), candidate)
    }
}
