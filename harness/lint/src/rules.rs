//! Lint rules, which need no grid: each reports code that does not do what its author intended.

mod divergence;
mod lock;
mod storage_class;
mod update;
mod validity;
mod waiting;

pub use storage_class::is_in_loop;

use std::collections::BTreeSet;

use litmus::{IgnoredClass, StorageClassSet, closed_enum};
use rspirv::spirv::{MemorySemantics, StorageClass};
use spirv_reader::{
    BarrierPart, ShaderLanguage, SpirvConstant, SpirvInstruction, SpirvModule, SpirvOperation, SpirvType,
};

use self::divergence::Divergence;
use entry_point::{Spot, source_location};

pub use validity::{InvalidUse, ValidityRule, invalid_uses};
pub use waiting::awaited_atomics;

/// A finding of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lint {
    pub rule: LintRule,
    /// The description.
    pub message: String,
    /// The source position, without an invocation.
    pub at: Spot,
}

closed_enum! {
    /// A rule of `lint`; its documentation page is `docs/reference/findings/lint-NAME.md`.
    pub enum LintRule {
        /// A control barrier that some invocations skip.
        DivergentBarrier = "divergent-barrier",
        /// Forbidden semantics or operands.
        InvalidSemantics = "invalid-semantics",
        /// A spin lock that lanes of one subgroup take.
        LockInEveryLane = "lock-in-every-lane",
        /// Shared memory that only lockstep execution orders.
        Lockstep = "lockstep",
        /// A release or acquire without availability or visibility.
        NoAvailability = "no-availability",
        /// A memory barrier without an order, or an order without a storage class of Vulkan.
        OrdersNothing = "orders-nothing",
        /// A plain read-modify-write by every invocation.
        PlainUpdate = "plain-update",
        /// A control barrier for other memory.
        WrongBarrier = "wrong-barrier",
    }
}

impl LintRule {
    /// Returns the code that the rule reports.
    pub fn subject(self) -> &'static str {
        match self {
            LintRule::OrdersNothing => {
                "a memory barrier without an order, or an order without a storage class of Vulkan"
            }
            LintRule::NoAvailability => {
                "a release without MakeAvailable, or an acquire without MakeVisible, where no access performs that \
                 operation either"
            }
            LintRule::Lockstep => "shared memory written and read by a shader that has no control barrier",
            LintRule::DivergentBarrier => {
                "a workgroup control barrier behind a branch, a return or a loop that differs between invocations"
            }
            LintRule::LockInEveryLane => {
                "a spin lock that every invocation of a workgroup takes: lanes of one subgroup wait for each other"
            }
            LintRule::WrongBarrier => {
                "a control barrier whose semantics name memory without preceding writes, between accesses to \
                 workgroup memory that it does not order"
            }
            LintRule::PlainUpdate => {
                "a load and a store of one word by every invocation of a workgroup, which need an atomic"
            }
            LintRule::InvalidSemantics => {
                "memory semantics or memory operands that the specification forbids"
            }
        }
    }

    /// Returns the clause of the specification.
    pub fn clause(self) -> &'static str {
        match self {
            LintRule::OrdersNothing | LintRule::WrongBarrier | LintRule::InvalidSemantics => "VK-SEM-08",
            LintRule::NoAvailability => "VK-LO-05",
            LintRule::Lockstep | LintRule::DivergentBarrier => "VK-SW-09",
            LintRule::LockInEveryLane => "VK-X-05",
            LintRule::PlainUpdate => "VK-DR-01",
        }
    }
}

/// Semantics bits of memory orders.
const ORDER_BITS: u32 = MemorySemantics::ACQUIRE.bits()
    | MemorySemantics::RELEASE.bits()
    | MemorySemantics::ACQUIRE_RELEASE.bits()
    | MemorySemantics::SEQUENTIALLY_CONSISTENT.bits();

/// An instruction that breaks a rule, with the description.
type RuleUse<'m> = (LintRule, &'m SpirvInstruction, String);

/// Checks a module against all rules; findings are in instruction order.
pub fn lint(module: &SpirvModule) -> Vec<Lint> {
    let facts = ModuleFacts::collect(module);
    let code = module.functions.values().flat_map(|function| &function.code);
    let semantics = code.flat_map(|instruction| {
        let all = semantics_of(module, instruction);
        all.into_iter().map(move |semantics| (instruction, semantics))
    });
    let uses = semantics
        .flat_map(|(instruction, semantics)| {
            let [release, acquire] = lacks_operations(module, &facts, instruction, semantics);
            [orders_nothing(module, instruction, semantics), release, acquire]
        })
        .flatten()
        .chain(lockstep_variables(module, &facts))
        .chain(skipped_barriers(module))
        .chain(locks_and_updates(module));
    let lint = |(rule, instruction, message): RuleUse<'_>| {
        let at = Spot { thread: 0, line: instruction.line, place: instruction.place, writes: None };
        Lint { rule, message, at }
    };
    let mut found: BTreeSet<Lint> = uses.map(lint).collect();
    // `orders-nothing` has reported the others.
    let is_new = |rule| !matches!(rule, ValidityRule::BarrierHasOrder | ValidityRule::OrderHasClass);
    let invalid = validity::invalid_uses(module).into_iter().filter(|one| is_new(one.rule));
    let rule = LintRule::InvalidSemantics;
    found.extend(invalid.map(|one| Lint { rule, message: one.message + one.hint, at: one.at }));
    found.into_iter().collect()
}

/// Reports semantics without an order, or without a storage class that Vulkan knows.
fn orders_nothing<'m>(
    module: &SpirvModule,
    instruction: &'m SpirvInstruction,
    semantics: u32,
) -> Option<RuleUse<'m>> {
    let is_ordered = semantics & ORDER_BITS != 0;
    let what = if is_fence(module, instruction) && !is_ordered {
        let rule = ValidityRule::BarrierHasOrder.name();
        format!("has no memory order, so it orders nothing ({rule})")
    } else if is_ordered && StorageClassSet::from_semantics(semantics) == StorageClassSet::EMPTY {
        let ignored = IgnoredClass::ALL.into_iter().filter(|class| semantics & class.bit() != 0);
        let named: Vec<&str> = ignored.map(IgnoredClass::name).collect();
        let named = match named.as_slice() {
            [] => "no storage class of Vulkan".to_owned(),
            named => format!("{} alone, which Vulkan ignores", named.join(" and ")),
        };
        format!("names {named}, so it orders nothing ({})", ValidityRule::OrderHasClass.name())
    } else {
        return None;
    };
    Some((LintRule::OrdersNothing, instruction, format!("Op{:?} {what}", instruction.op)))
}

/// Reports a release of buffers that makes nothing available, and an acquire that makes nothing visible.
fn lacks_operations<'m>(
    module: &SpirvModule,
    facts: &ModuleFacts,
    instruction: &'m SpirvInstruction,
    semantics: u32,
) -> [Option<RuleUse<'m>>; 2] {
    let has = |bits: MemorySemantics| semantics & bits.bits() != 0;
    let orders_buffers = |order: MemorySemantics| {
        let order = order | MemorySemantics::ACQUIRE_RELEASE;
        module.uses_vulkan_model && has(MemorySemantics::UNIFORM_MEMORY) && has(order)
    };
    let release = facts.lacks_availability
        && orders_buffers(MemorySemantics::RELEASE)
        && !has(MemorySemantics::MAKE_AVAILABLE);
    let acquire = facts.lacks_visibility
        && orders_buffers(MemorySemantics::ACQUIRE)
        && !has(MemorySemantics::MAKE_VISIBLE);
    let report = |what: &str| {
        let message = format!("Op{:?} {what}", instruction.op);
        (LintRule::NoAvailability, instruction, message)
    };
    [
        release.then(|| report("releases, but no operation makes the stored values available")),
        acquire.then(|| report("acquires, but no operation makes the loaded values visible")),
    ]
}

/// Reports shared variables that are stored and loaded without a barrier in the shader, once for each.
fn lockstep_variables<'m>(module: &SpirvModule, facts: &'m ModuleFacts) -> Vec<RuleUse<'m>> {
    if facts.has_control_barrier {
        return Vec::new();
    }
    let unshared = divergence::find_unshared_variables(module);
    let is_shared = |variable: &u32| facts.shared_stores.contains(variable) && !unshared.contains(variable);
    let loads = facts.shared_loads.iter().filter(|(variable, _)| is_shared(variable));
    let report = |(variable, load): &'m (u32, SpirvInstruction)| {
        let name = module.display_name(*variable);
        let message = format!("`{name}` is shared, stored and loaded, but the shader has no barrier");
        (LintRule::Lockstep, load, message)
    };
    loads.map(report).collect()
}

/// Reports barriers that not every invocation of the workgroup reaches.
fn skipped_barriers(module: &SpirvModule) -> impl Iterator<Item = RuleUse<'_>> {
    divergence::divergent_barriers(module, None).into_iter().map(|(barrier, branch, divergence)| {
        let line = source_location("", module, branch.line, branch.place).1;
        let line = line.map_or("a branch".to_owned(), |line| format!("the branch on line {line}"));
        let mut message = match divergence {
            Divergence::Always => format!(
                "not every invocation of the workgroup reaches this barrier: {line} depends on the invocation id"
            ),
            Divergence::ForSomeInputs => format!(
                "not every invocation of the workgroup reaches this barrier, unless its inputs make {line} equal for \
                 all: it depends on the invocation id"
            ),
            Divergence::InWgsl => format!("{line} depends on `read_write` storage"),
        };
        if module.language == Some(ShaderLanguage::Wgsl) {
            message = format!(
                "WGSL permits this barrier in uniform control flow only: {message}. naga compiles it, tint does not"
            );
        }
        (LintRule::DivergentBarrier, barrier, message)
    })
}

/// Reports spin locks of every lane, barriers for other memory, and plain updates of one word by all invocations.
fn locks_and_updates(module: &SpirvModule) -> impl Iterator<Item = RuleUse<'_>> {
    let locks = lock::find_spin_locks(module).into_iter().map(|exchange| {
        let message = "every invocation of the workgroup spins on this lock: lanes of one subgroup wait \
             for each other without a forward-progress guarantee";
        (LintRule::LockInEveryLane, exchange, message.to_owned())
    });
    let barriers = storage_class::mismatched_barriers(module).into_iter().map(|(barrier, variable)| {
        let name = module.display_name(variable);
        let message = format!(
            "this barrier does not order `{name}`, and no write precedes it in the memory that it \
                 orders"
        );
        (LintRule::WrongBarrier, barrier, message)
    });
    let updates = update::find_shared_updates(module).into_iter().map(|(store, variable)| {
        let name = module.variables.get(&variable).map_or_else(
            || module.display_name(variable),
            |declared| module.variable_name(variable, declared.ty),
        );
        let message =
            format!("every invocation loads, changes and stores the same word of `{name}`: use an atomic");
        (LintRule::PlainUpdate, store, message)
    });
    locks.chain(barriers).chain(updates)
}

/// Returns the barriers of an entry point that not every invocation reaches for some inputs, each with its branch.
pub fn divergent_barriers(
    module: &SpirvModule,
    function: u32,
) -> impl Iterator<Item = (&SpirvInstruction, &SpirvInstruction)> {
    divergence::divergent_barriers(module, Some(function))
        .into_iter()
        .filter(|(.., divergence)| *divergence != Divergence::InWgsl)
        .map(|(barrier, branch, _)| (barrier, branch))
}

/// Facts about a whole module.
#[derive(Default)]
struct ModuleFacts {
    /// Some non-private buffer stores exist, and none makes its memory available.
    lacks_availability: bool,
    /// Some non-private buffer loads exist, and none makes its memory visible.
    lacks_visibility: bool,
    /// A control barrier exists.
    has_control_barrier: bool,
    shared_stores: BTreeSet<u32>,
    /// A load of each shared variable that is loaded.
    shared_loads: Vec<(u32, SpirvInstruction)>,
}

impl ModuleFacts {
    fn collect(module: &SpirvModule) -> ModuleFacts {
        let mut facts = ModuleFacts::default();
        let [mut stores, mut available, mut loads, mut visible] = [false; 4];
        let has_several_invocations = module.entry_points.iter().any(|entry| {
            let size = module.declared_local_size(entry.function);
            size.is_some_and(|(size, ids)| ids || size.iter().product::<u32>() > 1)
        });
        for function in module.functions.values() {
            // Definitions precede uses in the code, so one pass finds the variable of every
            // pointer.
            let mut roots = std::collections::HashMap::new();
            for instruction in &function.code {
                let (pointer, memory, store) = match module.operation(instruction) {
                    SpirvOperation::AccessChain { base, .. } | SpirvOperation::Copy { value: base } => {
                        let root = roots.get(&base).copied().unwrap_or(base);
                        roots.insert(instruction.result, root);
                        continue;
                    }
                    SpirvOperation::ControlBarrier {
                        part: BarrierPart::Whole | BarrierPart::Wait, ..
                    } => {
                        facts.has_control_barrier = true;
                        continue;
                    }
                    SpirvOperation::Load { pointer, memory } => (pointer, memory, false),
                    SpirvOperation::Store { pointer, memory, .. } => (pointer, memory, true),
                    _ => continue,
                };
                let root = roots.get(&pointer).copied().unwrap_or(pointer);
                let class = module.variables.get(&root).map(|variable| variable.class);
                let elsewhere = memory.non_private && class != Some(StorageClass::Workgroup);
                match (store, class) {
                    (true, Some(StorageClass::Workgroup)) => {
                        facts.shared_stores.insert(root);
                    }
                    (false, Some(StorageClass::Workgroup))
                        if facts.shared_loads.iter().all(|(known, _)| *known != root) =>
                    {
                        facts.shared_loads.push((root, *instruction));
                    }
                    _ => {}
                }
                if store {
                    stores |= elsewhere;
                    available |= memory.available.is_some();
                } else {
                    loads |= elsewhere;
                    visible |= memory.visible.is_some();
                }
            }
        }
        facts.lacks_availability = stores && !available;
        facts.lacks_visibility = loads && !visible;
        // A workgroup of one invocation needs no barrier.
        facts.has_control_barrier |= !has_several_invocations;
        facts
    }
}

/// Returns the numbers of a declared workgroup size; a specialized size may be one.
fn smallest_local_size(module: &SpirvModule, (size, ids): ([u32; 3], bool)) -> [u32; 3] {
    let number = |id: u32| match module.constants.get(&id) {
        Some((_, SpirvConstant::Scalar(number))) if module.decorations_of(id).specialization.is_none() => {
            u32::try_from(*number).unwrap_or(1)
        }
        _ => 1,
    };
    if ids { size.map(number) } else { size }
}

/// Returns the constant memory semantics of an instruction.
fn semantics_of(module: &SpirvModule, instruction: &SpirvInstruction) -> Vec<u32> {
    module.operation(instruction).semantics_ids().filter_map(|id| integer_constant(module, id)).collect()
}

/// Returns an integer constant.
fn integer_constant(module: &SpirvModule, id: u32) -> Option<u32> {
    let (ty, constant) = module.constants.get(&id)?;
    let is_integer = matches!(module.types.get(ty), Some(SpirvType::Integer { .. }));
    match constant {
        SpirvConstant::Scalar(number) if is_integer => u32::try_from(*number).ok(),
        SpirvConstant::Null if is_integer => Some(0),
        _ => None,
    }
}

/// Returns true for a memory barrier.
fn is_fence(module: &SpirvModule, instruction: &SpirvInstruction) -> bool {
    matches!(module.operation(instruction), SpirvOperation::MemoryBarrier { .. })
}
