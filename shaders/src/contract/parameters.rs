//! Blocks of push constants, each one list that determines names, order and sizes.

/// Defines two types from a list of words: a structure of their values, and an enum of their positions in
/// kernels.
macro_rules! push_constants {
    (
        $(#[$of_values:meta])* $Values:ident, $Name:ident;
        $($(#[$meaning:meta])* $field:ident $Word:ident,)*
    ) => {
        $(#[$of_values])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $Values {
            $($(#[$meaning])* pub $field: u32,)*
        }

        #[doc = concat!("The fields of [`", stringify!($Values), "`] by their position among the push constants.")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $Name {
            $($Word,)*
        }

        impl $Name {
            /// All words, in order.
            pub(crate) const ALL: [$Name; [$(stringify!($field)),*].len()] = [$($Name::$Word),*];
        }

        impl $Values {
            /// Words of the push constants, rounded up to an even number because an address may follow.
            pub const WORDS: u32 = ($Name::ALL.len() as u32).next_multiple_of(2);
            /// Size of the push constants in bytes.
            pub const BYTES: u32 = 4 * Self::WORDS;

            /// Returns the words in the order of the fields.
            pub fn words(self) -> [u32; Self::WORDS as usize] {
                let mut words = [0; Self::WORDS as usize];
                words.iter_mut().zip($Name::ALL).for_each(|(word, name)| *word = self.word(name));
                words
            }

            pub(crate) fn word(&self, name: $Name) -> u32 {
                match name {
                    $($Name::$Word => self.$field,)*
                }
            }

            /// Returns the push constants in their binary form: little-endian words in the order of the
            /// fields.
            pub fn to_bytes(self) -> Vec<u8> {
                self.words().iter().flat_map(|word| word.to_le_bytes()).collect()
            }

            /// Parses the result of [`Self::to_bytes`] at the start of `bytes`; `None` if they are too short.
            pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
                let mut words = bytes.get(..Self::BYTES as usize)?.as_chunks::<4>().0.iter();
                Some($Values { $($field: u32::from_le_bytes(*words.next()?),)* })
            }
        }
    };
}
pub(crate) use push_constants;

push_constants! {
    /// The push constants of a kernel, in this order, each a 32-bit word.
    Parameters, Parameter;
    /// `G`: the number of groups, that is, workgroups of each class.
    groups Groups,
    /// `K`: the number of rounds.
    rounds Rounds,
    /// The maximum failed polls of an invocation over all rounds; 0 disables the rendezvous.
    spin Spin,
    /// `p`: consecutive workgroups of one class; divides `groups`.
    pairing Pairing,
    /// Coprime to `groups`.
    group_multiplier GroupMultiplier,
    /// Added per class.
    group_offset GroupOffset,
    /// Coprime to the kernel's lanes.
    lane_multiplier LaneMultiplier,
    /// Added per class.
    lane_offset LaneOffset,
    /// Units between the locations of two instances.
    stride Stride,
    /// Units between two storages of an instance.
    spacing Spacing,
    /// The initial value of result memory.
    poison Poison,
    /// The value of a [`ResultSlot::Done`](crate::ResultSlot::Done).
    done Done,
    /// Rounds between two rendezvous; at least 1.
    interval Interval,
    /// Loads of the last invocation to arrive at a rendezvous before it continues.
    hold Hold,
    /// `t`: the class of the first workgroups, and the subgroup class of a workgroup's first subgroup.
    turn Turn,
    /// Arrivals that each rendezvous waits for: `C`, or less if fewer workgroups run concurrently.
    party Party,
}

impl Parameters {
    /// One instance in each slot of one group, one round and no rendezvous: the minimum around the threads of
    /// a test.
    pub const SINGLE: Parameters = Parameters {
        groups: 1,
        rounds: 1,
        spin: 0,
        pairing: 1,
        group_multiplier: 1,
        group_offset: 0,
        lane_multiplier: 1,
        lane_offset: 0,
        stride: 1024,
        spacing: 64,
        poison: 0,
        done: 1,
        interval: 1,
        hold: 0,
        turn: 0,
        party: 1,
    };
}
