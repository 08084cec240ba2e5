//! Options beyond cat's expressiveness, such as the event representation, from the first comment of a model.

use super::error::CatProblem;

/// Declares the options of a model: for each its field, the type of its choices, its key and their words.
macro_rules! model_options {
    ($(
        $(#[$documentation:meta])*
        $field:ident: $choice:ident = $key:literal {
            $($(#[$attribute:meta])* $variant:ident = $word:literal,)*
        }
    )*) => {
        $(
            $(#[$documentation])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
            pub enum $choice {
                $($(#[$attribute])* $variant,)*
            }
        )*

        /// The choices of a model. The defaults are those of Dartagnan.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct ModelOptions {
            $(
                #[doc = concat!("The option `", $key, "`.")]
                pub $field: $choice,
            )*
        }

        /// Options as written in one file, before defaults apply. An including file may add the missing ones.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(crate) struct PartialOptions {
            $($field: Option<$choice>,)*
        }

        impl PartialOptions {
            /// Reads one `key=value` word.
            pub(crate) fn read_word(&mut self, word: &str) -> Result<(), CatProblem> {
                let Some((key, value)) = word.split_once('=') else {
                    return Err(CatProblem::MalformedOption { word: word.to_owned() });
                };
                match key {
                    $($key => {
                        let chosen = match value {
                            $($word => $choice::$variant,)*
                            _ => {
                                let (value, allowed) = (value.to_owned(), &[$($word),*]);
                                return Err(CatProblem::UnknownOptionValue { key: $key, value, allowed });
                            }
                        };
                        match self.$field.replace(chosen) {
                            None => Ok(()),
                            Some(_) => Err(CatProblem::RepeatedOption { key: $key }),
                        }
                    })*
                    _ => Err(CatProblem::UnknownOption { key: key.to_owned(), known: &[$($key),*] }),
                }
            }

            /// Adds the options that `self` does not set.
            pub(crate) fn merge_with(self, other: PartialOptions) -> PartialOptions {
                PartialOptions { $($field: self.$field.or(other.$field),)* }
            }

            /// The choices, with the default where nothing is written.
            pub(crate) fn resolve_defaults(self) -> ModelOptions {
                ModelOptions { $($field: self.$field.unwrap_or_default(),)* }
            }
        }
    };
}

model_options! {
    /// Representation of a read-modify-write.
    rmw: RmwEvents = "rmw" {
        /// A read and a write joined by `rmw`.
        #[default]
        Split = "split",
        /// One event that reads and writes.
        Fused = "fused",
    }
    /// The initial writes of an execution.
    init: InitialWrites = "init" {
        PerLocation = "per-location",
        /// One for each name of a location.
        #[default]
        PerName = "per-name",
    }
    /// The control barriers that synchronize with each other.
    barrier: BarrierReach = "barrier" {
        /// Those of one workgroup.
        #[default]
        Workgroup = "workgroup",
        /// Those of any threads.
        Any = "any",
    }
    /// Required shape of the scoped modification order.
    asmo: AsmoOrder = "asmo" {
        /// Coherence order among mutually ordered atomics.
        #[default]
        Plain = "plain",
        Transitive = "transitive",
    }
    /// Definition of a location's final value.
    final_value: FinalValueRule = "final" {
        /// The value that a read in the device domain after all threads returns.
        DeviceRead = "device-read",
        /// The last write in coherence order.
        #[default]
        Coherence = "co",
    }
    /// Values that a candidate execution may hold.
    values: CandidateValues = "values" {
        /// Data dependency and reads-from together have no cycle.
        NoThinAir = "no-thin-air",
        /// Any that agree with reads-from.
        #[default]
        Free = "free",
    }
    /// Tests that the model can judge.
    language: TestLanguage = "tests" {
        /// Instructions of Vulkan: the native dialect and Khronos' files.
        #[default]
        Vulkan = "vulkan",
        /// Those of the HSA dialect.
        Hsa = "hsa",
        /// Those of every dialect.
        Any = "any",
    }
    /// Events that the model covers.
    events: CoveredEvents = "events" {
        /// Instructions of Dartagnan's dialect. Tests with others are refused.
        #[default]
        Basic = "basic",
        /// In addition, hosts, domain operations, access masks, accesses to parts of locations, shader calls and interlocked
        /// sections.
        All = "all",
    }
    /// The lanes that may execute a subgroup operation together after reaching it along different paths, in code
    /// that a branch skips. `MaximallyReconvergesKHR` leaves no choice.
    tangle_rule: TangleRule = "tangles" {
        /// Any lanes with any others: they "may resume executing the same dynamic instances".
        #[default]
        Any = "any",
        /// Only lanes that arrived along one path.
        Apart = "apart",
        Together = "together",
    }
    /// Orders of atomics and memory barriers that the model defines.
    orders: MemoryOrders = "orders" {
        /// Orders of SPIR-V for Vulkan, up to acquire-release. Tests with `.seq_cst` are refused.
        #[default]
        AcquireRelease = "acq-rel",
        /// Those, and sequentially consistent.
        Sequential = "seq-cst",
    }
    /// Instructions that have a counterpart in the language whose model it is.
    instructions: CoveredInstructions = "instructions" {
        /// All that the other options admit.
        #[default]
        All = "all",
        /// Instructions of WGSL: relaxed atomics, barriers of a workgroup. Tests with others are refused.
        Wgsl = "wgsl",
    }
}
