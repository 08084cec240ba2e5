//! Options beyond cat's expressiveness, such as the event representation, from the first comment of a model.

use super::error::CatProblem;

/// Representation of a read-modify-write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RmwEvents {
    /// A read and a write joined by `rmw`.
    #[default]
    Split,
    /// One event that reads and writes.
    Fused,
}

/// The initial writes of an execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum InitialWrites {
    PerLocation,
    /// One for each name of a location.
    #[default]
    PerName,
}

/// The control barriers that synchronize with each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BarrierReach {
    /// Those of one workgroup.
    #[default]
    Workgroup,
    /// Those of any threads.
    Any,
}

/// Required shape of the scoped modification order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AsmoOrder {
    /// Coherence order among mutually ordered atomics.
    #[default]
    Plain,
    Transitive,
}

/// Definition of a location's final value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FinalValueRule {
    /// The value that a read in the device domain after all threads returns.
    DeviceRead,
    /// The last write in coherence order.
    #[default]
    Coherence,
}

/// Values that a candidate execution may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CandidateValues {
    /// Data dependency and reads-from together have no cycle.
    NoThinAir,
    /// Any that agree with reads-from.
    #[default]
    Free,
}

/// Tests that the model can judge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TestLanguage {
    /// Instructions of Vulkan: the native dialect and Khronos' files.
    #[default]
    Vulkan,
    /// Those of the HSA dialect.
    Hsa,
}

/// Events that the model covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CoveredEvents {
    /// Instructions of Dartagnan's dialect. Tests with others are refused.
    #[default]
    Basic,
    /// In addition, hosts, domain operations, access masks, accesses to parts of locations, shader calls and interlocked
    /// sections.
    All,
}

/// The lanes that may execute a subgroup operation together after reaching it along different paths, in code
/// that a branch skips. `MaximallyReconvergesKHR` leaves no choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TangleRule {
    /// Any lanes with any others: they "may resume executing the same dynamic instances".
    #[default]
    Any,
    /// Only lanes that arrived along one path.
    Apart,
    Together,
}

/// Orders of atomics and memory barriers that the model defines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MemoryOrders {
    /// Orders of SPIR-V for Vulkan, up to acquire-release. Tests with `.seq_cst` are refused.
    #[default]
    AcquireRelease,
    /// Those, and sequentially consistent.
    Sequential,
}

/// Instructions that have a counterpart in the language whose model it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CoveredInstructions {
    /// All that the other options admit.
    #[default]
    All,
    /// Instructions of WGSL: relaxed atomics, barriers of a workgroup. Tests with others are refused.
    Wgsl,
}

/// The choices of a model. The defaults are those of Dartagnan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ModelOptions {
    /// `rmw=split|fused`
    pub rmw: RmwEvents,
    /// `init=per-location|per-name`
    pub init: InitialWrites,
    /// `barrier=workgroup|any`
    pub barrier: BarrierReach,
    /// `asmo=plain|transitive`
    pub asmo: AsmoOrder,
    /// `final=device-read|co`
    pub final_value: FinalValueRule,
    /// `values=no-thin-air|free`
    pub values: CandidateValues,
    /// `tests=vulkan|hsa`
    pub language: TestLanguage,
    /// `events=basic|all`
    pub events: CoveredEvents,
    /// `tangles=any|apart|together`
    pub tangle_rule: TangleRule,
    /// `orders=acq-rel|seq-cst`
    pub orders: MemoryOrders,
    /// `instructions=all|wgsl`
    pub instructions: CoveredInstructions,
}

/// Options as written in one file, before defaults apply. An including file may add the missing ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PartialOptions {
    rmw: Option<RmwEvents>,
    init: Option<InitialWrites>,
    barrier: Option<BarrierReach>,
    asmo: Option<AsmoOrder>,
    final_value: Option<FinalValueRule>,
    values: Option<CandidateValues>,
    language: Option<TestLanguage>,
    events: Option<CoveredEvents>,
    tangle_rule: Option<TangleRule>,
    orders: Option<MemoryOrders>,
    instructions: Option<CoveredInstructions>,
}

/// The keys, for messages.
const OPTION_KEYS: &[&str] = &[
    "rmw",
    "init",
    "barrier",
    "asmo",
    "final",
    "values",
    "tests",
    "events",
    "tangles",
    "orders",
    "instructions",
];

impl PartialOptions {
    /// Reads one `key=value` word.
    pub(crate) fn read_word(&mut self, word: &str) -> Result<(), CatProblem> {
        let Some((key, value)) = word.split_once('=') else {
            return Err(CatProblem::MalformedOption { word: word.to_owned() });
        };
        match key {
            "rmw" => choose_option(
                &mut self.rmw,
                "rmw",
                value,
                [RmwEvents::Split, RmwEvents::Fused],
                &["split", "fused"],
            ),
            "init" => choose_option(
                &mut self.init,
                "init",
                value,
                [InitialWrites::PerLocation, InitialWrites::PerName],
                &["per-location", "per-name"],
            ),
            "barrier" => choose_option(
                &mut self.barrier,
                "barrier",
                value,
                [BarrierReach::Workgroup, BarrierReach::Any],
                &["workgroup", "any"],
            ),
            "asmo" => choose_option(
                &mut self.asmo,
                "asmo",
                value,
                [AsmoOrder::Plain, AsmoOrder::Transitive],
                &["plain", "transitive"],
            ),
            "final" => choose_option(
                &mut self.final_value,
                "final",
                value,
                [FinalValueRule::DeviceRead, FinalValueRule::Coherence],
                &["device-read", "co"],
            ),
            "values" => choose_option(
                &mut self.values,
                "values",
                value,
                [CandidateValues::NoThinAir, CandidateValues::Free],
                &["no-thin-air", "free"],
            ),
            "tests" => choose_option(
                &mut self.language,
                "tests",
                value,
                [TestLanguage::Vulkan, TestLanguage::Hsa],
                &["vulkan", "hsa"],
            ),
            "events" => choose_option(
                &mut self.events,
                "events",
                value,
                [CoveredEvents::Basic, CoveredEvents::All],
                &["basic", "all"],
            ),
            "tangles" => choose_option(
                &mut self.tangle_rule,
                "tangles",
                value,
                [TangleRule::Any, TangleRule::Apart, TangleRule::Together],
                &["any", "apart", "together"],
            ),
            "orders" => choose_option(
                &mut self.orders,
                "orders",
                value,
                [MemoryOrders::AcquireRelease, MemoryOrders::Sequential],
                &["acq-rel", "seq-cst"],
            ),
            "instructions" => choose_option(
                &mut self.instructions,
                "instructions",
                value,
                [CoveredInstructions::All, CoveredInstructions::Wgsl],
                &["all", "wgsl"],
            ),
            _ => Err(CatProblem::UnknownOption { key: key.to_owned(), known: OPTION_KEYS }),
        }
    }

    /// Adds the options that `self` does not set.
    pub(crate) fn merge_with(self, other: PartialOptions) -> PartialOptions {
        PartialOptions {
            rmw: self.rmw.or(other.rmw),
            init: self.init.or(other.init),
            barrier: self.barrier.or(other.barrier),
            asmo: self.asmo.or(other.asmo),
            final_value: self.final_value.or(other.final_value),
            values: self.values.or(other.values),
            language: self.language.or(other.language),
            events: self.events.or(other.events),
            tangle_rule: self.tangle_rule.or(other.tangle_rule),
            orders: self.orders.or(other.orders),
            instructions: self.instructions.or(other.instructions),
        }
    }

    /// The choices, with the default where nothing is written.
    pub(crate) fn resolve_defaults(self) -> ModelOptions {
        ModelOptions {
            rmw: self.rmw.unwrap_or_default(),
            init: self.init.unwrap_or_default(),
            barrier: self.barrier.unwrap_or_default(),
            asmo: self.asmo.unwrap_or_default(),
            final_value: self.final_value.unwrap_or_default(),
            values: self.values.unwrap_or_default(),
            language: self.language.unwrap_or_default(),
            events: self.events.unwrap_or_default(),
            tangle_rule: self.tangle_rule.unwrap_or_default(),
            orders: self.orders.unwrap_or_default(),
            instructions: self.instructions.unwrap_or_default(),
        }
    }
}

fn choose_option<T: Copy, const N: usize>(
    slot: &mut Option<T>,
    key: &'static str,
    value: &str,
    choices: [T; N],
    words: &'static [&'static str; N],
) -> Result<(), CatProblem> {
    let Some(chosen) = words.iter().zip(choices).find(|(word, _)| **word == value).map(|(_, choice)| choice)
    else {
        return Err(CatProblem::UnknownOptionValue { key, value: value.to_owned(), allowed: words });
    };
    if slot.replace(chosen).is_some() {
        return Err(CatProblem::RepeatedOption { key });
    }
    Ok(())
}
