//! Loop counters that start alike in every invocation, the addresses that depend on them, and the conditions that bound
//! them.
//!
//! In `for (c = 0; c < channels; ++c) out[4 * i + c] = …`, invocations race only for more than four channels. No value
//! that depends on the input reaches the address.

use std::collections::HashMap;

use rspirv::spirv::{BuiltIn, Op, StorageClass};
use spirv_reader::{ImageOperation, SpirvInstruction, SpirvModule, SpirvOperation};

use entry_point::dataflow::{Analysis, COMPONENTS, DataFlow, Facts};

/// A set of counters, a bit each. The last bit represents all further counters.
pub(crate) type CounterSet = u64;
const LAST_COUNTER: usize = 63;

/// The use of loop counters by an entry point, by site.
#[derive(Clone, Debug, Default)]
pub(crate) struct CounterUse {
    addresses: HashMap<u32, CounterSet>,
    conditions: HashMap<u32, CounterSet>,
}

impl CounterUse {
    /// Analyzes the code of an entry point.
    pub fn analyze(module: &SpirvModule, function: u32) -> CounterUse {
        let flow = DataFlow::solve(module, function, None, CounterAnalysis { steps: counter_steps(module) });
        let mut usage = CounterUse::default();
        // A loop over tiles in workgroup memory races between its rounds, however its elements are numbered.
        let is_shared = |pointer: u32| {
            let variable = flow.root_of(pointer).and_then(|root| module.variables.get(&root));
            variable.is_some_and(|variable| variable.class == StorageClass::Workgroup)
        };
        for at in &flow.code {
            let address = match module.operation(at.instruction) {
                SpirvOperation::Load { pointer, .. } | SpirvOperation::Store { pointer, .. }
                    if !is_shared(pointer) =>
                {
                    flow.address_fact(pointer)
                }
                SpirvOperation::Image(
                    ImageOperation::Read { coordinate, .. } | ImageOperation::Write { coordinate, .. },
                ) => flow.join_of_values(&[coordinate]),
                SpirvOperation::Atomic(access) if !is_shared(access.pointer) => {
                    flow.address_fact(access.pointer)
                }
                SpirvOperation::BranchConditional { condition, .. } => {
                    usage.conditions.insert(at.site, flow.join_of_values(&[condition]));
                    continue;
                }
                _ => continue,
            };
            usage.addresses.insert(at.site, address);
        }
        usage
    }

    /// Returns the counters that an address at one of these sites depends on.
    pub fn counters_of_addresses(&self, sites: &[u32]) -> CounterSet {
        sites.iter().filter_map(|site| self.addresses.get(site)).fold(0, |all, own| all | own)
    }

    /// Returns true if the branch at a site compares one of these counters.
    pub fn compares_any(&self, site: u32, counters: CounterSet) -> bool {
        self.conditions.get(&site).is_some_and(|own| own & counters != 0)
    }
}

/// Returns the additions that advance counters, each with the number of its counter.
fn counter_steps(module: &SpirvModule) -> HashMap<u32, usize> {
    let is_constant = |id: &u32| module.constants.contains_key(id);
    let mut steps = HashMap::new();
    for function in module.functions.values() {
        // The values of each variable and phi, and the variable of each load.
        let mut sources: HashMap<u32, Vec<u32>> = HashMap::new();
        let mut loads: HashMap<u32, u32> = HashMap::new();
        for instruction in &function.code {
            match module.operation(instruction) {
                SpirvOperation::Load { pointer, .. } => _ = loads.insert(instruction.result, pointer),
                SpirvOperation::Store { pointer, value, .. } => {
                    sources.entry(pointer).or_default().push(value)
                }
                SpirvOperation::Phi { sources: all } => {
                    sources
                        .entry(instruction.result)
                        .or_default()
                        .extend(all.iter().map(|[value, _]| *value));
                }
                _ => {}
            }
        }
        for one in function.code.iter().filter(|one| matches!(one.op, Op::IAdd | Op::ISub)) {
            let SpirvOperation::Compute { operands: [left, right], .. } = module.operation(one) else {
                continue;
            };
            let counter = if is_constant(right) { left } else { right };
            let place = loads.get(counter).unwrap_or(counter);
            let is_counter = sources.get(place).is_some_and(|all| {
                all.contains(&one.result) && all.iter().all(|id| *id == one.result || is_constant(id))
            });
            if is_counter && (is_constant(left) || is_constant(right)) {
                let number = steps.len().min(LAST_COUNTER);
                steps.insert(one.result, number);
            }
        }
    }
    steps
}

struct CounterAnalysis {
    steps: HashMap<u32, usize>,
}

impl Analysis for CounterAnalysis {
    type Fact = CounterSet;

    fn join(&self, first: CounterSet, second: CounterSet) -> CounterSet {
        first | second
    }

    fn built_in_facts(&self, _: BuiltIn) -> Option<Facts<CounterSet>> {
        None
    }

    fn constant_fact(&self) -> CounterSet {
        0
    }

    fn load_fact(&self, _: Option<u32>, _: CounterSet) -> CounterSet {
        0
    }

    fn transfer(
        &self,
        instruction: &SpirvInstruction,
        _: &[u32],
        facts: &[Facts<CounterSet>],
    ) -> Facts<CounterSet> {
        let own_counter = self.steps.get(&instruction.result).map_or(0, |number| 1 << number);
        [facts.iter().flatten().fold(own_counter, |all, fact| all | fact); COMPONENTS]
    }
}
