//! Counterexamples: the inputs of a model, small ones first, for a walk that replays them.

use std::collections::BTreeSet;

use crate::decide::{SMALL_INPUTS, TermModel};
use crate::input::{GivenValue, InputMemory, InputValue, RacyInputs};
use crate::names::{scalar_name, scalar_type};
use crate::prover::{Prover, Query};
use crate::term::{FunctionKind, Operator, TermId};

/// Upper bound on the offsets of accesses, the size of buffers without given contents.
const MAX_OFFSET: u64 = (1 << 16) - 64;

impl Prover<'_> {
    /// Returns the inputs of a small counterexample for a refuted query.
    pub fn counterexample(&mut self, query: &Query, model: &TermModel) -> RacyInputs {
        let mut all = query.conjuncts.clone();
        all.extend(self.side_facts(query));
        for offset in &query.offsets {
            let bound = self.summary.terms.constant(64, MAX_OFFSET);
            all.push(self.summary.terms.binary(Operator::Less, *offset, bound));
        }
        let exact = self.exact_instances(query, &BTreeSet::new(), &[]);
        for small in SMALL_INPUTS {
            if let Some(model) = self.find_small(&all, &exact, small) {
                return self.read_inputs(&model);
            }
        }
        self.read_inputs(model)
    }

    /// Returns the inputs of a model.
    pub fn read_inputs(&self, model: &TermModel) -> RacyInputs {
        let mut found = RacyInputs { grid: [1; 3], ..RacyInputs::default() };
        for axis in 0..3 {
            found.grid[axis] = self.grid[axis].unwrap_or(1);
        }
        let terms = &self.summary.terms;
        let mut values: Vec<(TermId, u64)> = model.values.iter().map(|(id, value)| (*id, *value)).collect();
        values.sort_unstable();
        for (id, value) in values {
            let term = terms.term(id);
            let Operator::Apply(function) = term.operator else { continue };
            let function = terms.function(function);
            let arguments: Vec<u64> =
                term.arguments.iter().map(|argument| self.evaluate(*argument, model).unwrap_or(0)).collect();
            match function.kind {
                FunctionKind::GroupCount(axis) => found.grid[axis] = value as u32,
                FunctionKind::Specialization(id) => {
                    let number = self.summary.module.decorations_of(id).specialization;
                    found.specialization.extend(number.map(|number| (number, value)));
                }
                FunctionKind::Contents(variable, width) => {
                    let (element, offset) = match arguments.as_slice() {
                        [offset] => (0, *offset),
                        [element, offset, ..] => (*element, *offset),
                        [] => continue,
                    };
                    // A boolean takes four bytes.
                    let count = if width == 1 { 4 } else { width.div_ceil(8) as usize };
                    let bytes = value.to_le_bytes().into_iter().take(count).collect();
                    let name = scalar_name(self.summary.module, self.summary.specialized, variable, offset);
                    let ty = scalar_type(&self.summary, variable, offset);
                    let text = format!("{name} = {}", GivenValue::new(ty, value, width));
                    let memory = InputMemory::of_variable(self.summary.module, variable, element);
                    found.inputs.push(InputValue { memory, offset, bytes, text });
                }
                FunctionKind::BufferElements(_)
                | FunctionKind::LocalId(_)
                | FunctionKind::GroupId(_)
                | FunctionKind::Subgroup(_)
                | FunctionKind::Elected
                | FunctionKind::Iteration(_)
                | FunctionKind::LastIteration(_)
                | FunctionKind::Carried
                | FunctionKind::Computation(_)
                | FunctionKind::Arbitrary
                | FunctionKind::Unwritten => {}
            }
        }
        found.inputs.sort();
        found.inputs.dedup();
        found
    }
}
