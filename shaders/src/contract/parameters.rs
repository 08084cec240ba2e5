//! Blocks of push constants, each one list: names, order and sizes follow from it.

/// Makes two types of a list of words: a structure with their values, and their names inside kernels by position.
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
            /// All of them, in order.
            pub(crate) const ALL: [$Name; [$(stringify!($field)),*].len()] = [$($Name::$Word),*];
        }

        impl $Values {
            /// Words of the push constants: behind the fields as many as make it even, since an address may follow.
            pub const WORDS: u32 = ($Name::ALL.len() as u32).next_multiple_of(2);
            /// Size of the push constants in bytes.
            pub const BYTES: u32 = 4 * Self::WORDS;

            /// The words in the order of the fields.
            pub fn words(self) -> [u32; Self::WORDS as usize] {
                let mut words = [0; Self::WORDS as usize];
                words.iter_mut().zip([$(self.$field),*]).for_each(|(word, value)| *word = value);
                words
            }

            /// The push constants as kernels read them: little-endian words in the order of the fields.
            pub fn to_bytes(self) -> Vec<u8> {
                self.words().iter().flat_map(|word| word.to_le_bytes()).collect()
            }

            /// What [`Self::to_bytes`] was made of, from the start of `bytes`; `None` where they are too few.
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
    /// `G`: groups, that is, workgroups of each class.
    groups Groups,
    /// `K`: rounds.
    rounds Rounds,
    /// Loads that an invocation spends at most on waiting in vain, over all rounds; 0: no rendezvous.
    spin Spin,
    /// `p`: workgroups of one class in a row; divides `groups`.
    pairing Pairing,
    /// Co-prime to `groups`.
    group_multiplier GroupMultiplier,
    /// Added per class.
    group_offset GroupOffset,
    /// Co-prime to the kernel's lanes.
    lane_multiplier LaneMultiplier,
    /// Added per class.
    lane_offset LaneOffset,
    /// Units from one instance's locations to the next one's.
    stride Stride,
    /// Units from one storage of an instance to the next.
    spacing Spacing,
    /// What the result memory is filled with.
    poison Poison,
    /// What a [`ResultSlot::Done`](crate::ResultSlot::Done) holds.
    done Done,
    /// Rounds from one meeting to the next; at least 1.
    interval Interval,
    /// Loads that whoever comes last to a meeting makes before it goes on.
    hold Hold,
    /// `t`: which class the first workgroups play, and which subgroup class the first subgroup of a workgroup hosts.
    turn Turn,
    /// Arrivals that each meeting waits for: `C`, or fewer where not so many workgroups run at once.
    party Party,
}

impl Parameters {
    /// One instance in each slot of one group, one round, nobody waits for anybody: as little around the threads of a
    /// test as a kernel can have.
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
