//! The keywords of the native dialect with their meanings: one table for both parser and printer.

use crate::comparison::Comparison;
use crate::test::{
    ArithmeticOperation, IgnoredClass, MAX_COMPONENTS, MAX_VECTOR_BYTES, Order, Reference, ScalarType, Scope,
    StorageClass,
};

/// Keywords with their meanings.
pub(super) type Words<T> = &'static [(&'static str, T)];

/// Declares the words of all values of a type, and these words with a prefix.
macro_rules! prefixed_words {
    ($words:ident, $prefixed:ident = $prefix:literal: $type:ident { $($word:literal = $value:ident,)* }) => {
        pub(super) const $words: Words<$type> = &[$(($word, $type::$value)),*];
        pub(super) const $prefixed: Words<$type> = &[$((concat!($prefix, $word), $type::$value)),*];
        const _: () = assert!($words.len() == $type::ALL.len(), "every value has its words");
    };
}

prefixed_words! {
    SCOPES, EXECUTION_SCOPES = "exec": Scope {
        "sg" = Subgroup,
        "wg" = Workgroup,
        "qf" = QueueFamily,
        "dv" = Device,
        "inv" = Invocation,
        "xd" = CrossDevice,
        "call" = ShaderCall,
        "fi" = FragmentInterlock,
    }
}

prefixed_words! {
    CLASSES, SEMANTICS_CLASSES = "sem": StorageClass {
        "sc0" = Buffer,
        "sc1" = Workgroup,
        "sc2" = Image,
        "sc3" = Output,
    }
}

/// Storage classes of semantics that the memory model ignores.
pub(super) const IGNORED_CLASSES: Words<IgnoredClass> = &[
    ("semsubgroup", IgnoredClass::Subgroup),
    ("semcrossworkgroup", IgnoredClass::CrossWorkgroup),
    ("sematomiccounter", IgnoredClass::AtomicCounter),
];

pub(super) const ORDERS: Words<Order> =
    &[("acq", Order::Acquire), ("rel", Order::Release), ("acq_rel", Order::AcquireRelease)];

/// The order of sequentially consistent atomics and barriers.
pub(super) const SEQUENTIAL: &str = "seq_cst";

pub(super) const OPERATIONS: Words<ArithmeticOperation> = &[
    ("add", ArithmeticOperation::Add),
    ("sub", ArithmeticOperation::Subtract),
    ("mul", ArithmeticOperation::Multiply),
    ("div", ArithmeticOperation::Divide),
    ("and", ArithmeticOperation::And),
    ("or", ArithmeticOperation::Or),
    ("xor", ArithmeticOperation::Xor),
    ("min", ArithmeticOperation::Minimum),
    ("max", ArithmeticOperation::Maximum),
];

pub(super) const BRANCHES: Words<Comparison> = &[
    ("beq", Comparison::Equal),
    ("bne", Comparison::NotEqual),
    ("bge", Comparison::GreaterOrEqual),
    ("ble", Comparison::LessOrEqual),
    ("bgt", Comparison::Greater),
    ("blt", Comparison::Less),
];

pub(super) const REFERENCES: Words<Reference> = &[
    ("buffer", Reference::Buffer),
    ("workgroup", Reference::Workgroup),
    ("image", Reference::Image),
    ("address", Reference::Address),
];

pub(super) const TYPES: Words<ScalarType> = &[
    ("u8", ScalarType::U8),
    ("u16", ScalarType::U16),
    ("u32", ScalarType::U32),
    ("u64", ScalarType::U64),
    ("i8", ScalarType::I8),
    ("i16", ScalarType::I16),
    ("i32", ScalarType::I32),
    ("i64", ScalarType::I64),
    ("f32", ScalarType::F32),
    ("f64", ScalarType::F64),
];

/// Suffixes of vector types with their numbers of components.
pub(super) const VECTORS: Words<u8> = &[("x2", 2), ("x3", 3), ("x4", MAX_COMPONENTS)];

/// A scalar type, or a vector type given by its component type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AccessType {
    pub scalar: ScalarType,
    /// 1 for a scalar type.
    pub components: u8,
}

impl AccessType {
    /// Returns the type that `word` names, even if it is too wide.
    pub fn from_word(word: &str) -> Option<AccessType> {
        let parse_type =
            |word, components| lookup(TYPES, word).map(|scalar| AccessType { scalar, components });
        parse_type(word, 1).or_else(|| {
            VECTORS
                .iter()
                .find_map(|(suffix, components)| parse_type(word.strip_suffix(suffix)?, *components))
        })
    }

    /// Returns the size in bytes.
    pub fn bytes(self) -> u32 {
        self.scalar.bytes() * u32::from(self.components)
    }

    /// Returns true if the language does not have the type: vectors have at most 16 bytes.
    pub fn is_too_wide(self) -> bool {
        self.bytes() > MAX_VECTOR_BYTES
    }

    /// Returns its keyword.
    pub fn keyword(self) -> String {
        let suffix = VECTORS.iter().find(|(_, components)| *components == self.components);
        format!("{}{}", self.scalar.keyword(), suffix.map_or("", |(suffix, _)| suffix))
    }
}

/// Modifiers that are not members of a table above.
pub(super) const PLAIN_MODIFIERS: &[&str] =
    &["atom", "coop", "nonpriv", "av", "vis", "semav", "semvis", "cas", "uneq_acq", "arrive", "wait"];

/// Returns the rank of a modifier within its instruction, in the order of the language.
///
/// `None` for `uneq_acq`, whose own modifiers repeat earlier ranks, and for words that are not modifiers.
pub(super) fn modifier_rank(word: &str) -> Option<usize> {
    let ranks = [
        matches!(word, "coop" | "arrive" | "wait"),
        matches!(word, "atom" | "nonpriv" | "av" | "vis"),
        lookup(EXECUTION_SCOPES, word).is_some(),
        lookup(ORDERS, word).is_some() || word == SEQUENTIAL,
        lookup(SCOPES, word).is_some(),
        lookup(CLASSES, word).is_some(),
        is_class_of_semantics(word),
        word == "semav",
        word == "semvis",
        word == "cas" || lookup(OPERATIONS, word).is_some(),
        AccessType::from_word(word).is_some(),
    ];
    ranks.iter().position(|is| *is)
}

/// Words that Dartagnan's reader reserves, one a line; no location may have such a name.
const RESERVED: &str = include_str!("reserved.txt");

/// Returns the keywords of the native dialect by category, for reference pages that must be complete.
pub fn keywords_by_category() -> Vec<(&'static str, Vec<&'static str>)> {
    fn names<T>(words: Words<T>) -> Vec<&'static str> {
        words.iter().map(|(word, _)| *word).collect()
    }
    vec![
        ("scopes", names(SCOPES)),
        ("execution scopes of control barriers", names(EXECUTION_SCOPES)),
        ("storage classes", names(CLASSES)),
        ("storage classes of semantics", names(SEMANTICS_CLASSES)),
        ("storage classes of semantics that are ignored", names(IGNORED_CLASSES)),
        ("orders", names(ORDERS).into_iter().chain([SEQUENTIAL]).collect()),
        ("operations", names(OPERATIONS)),
        ("branches", names(BRANCHES)),
        ("subgroup operations", names(super::subgroup::SUBGROUP_OPERATIONS)),
        ("kinds of storage", names(REFERENCES)),
        ("types", names(TYPES)),
        ("ends of vector types", names(VECTORS)),
        ("other modifiers", PLAIN_MODIFIERS.to_vec()),
        ("words that no location may be called", RESERVED.lines().collect()),
    ]
}

/// Returns the value of `word` in a table.
pub(super) fn lookup<T: Copy>(words: Words<T>, word: &str) -> Option<T> {
    words.iter().find(|(candidate, _)| *candidate == word).map(|(_, meaning)| *meaning)
}

/// Returns the keyword for `meaning`.
pub(super) fn find_word<T: Copy + PartialEq>(words: Words<T>, meaning: T) -> &'static str {
    words.iter().find(|(_, candidate)| *candidate == meaning).map_or("?", |(word, _)| word)
}

/// Returns true if `word` names a storage class of semantics, including ignored ones.
pub(super) fn is_class_of_semantics(word: &str) -> bool {
    lookup(SEMANTICS_CLASSES, word).is_some() || lookup(IGNORED_CLASSES, word).is_some()
}

/// Returns the modifiers of accesses, fences and barriers, except types.
fn modifiers() -> impl Iterator<Item = &'static str> {
    fn names<T>(words: Words<T>) -> impl Iterator<Item = &'static str> {
        words.iter().map(|(word, _)| *word)
    }
    let scopes = names(SCOPES).chain(names(EXECUTION_SCOPES));
    let classes = names(CLASSES).chain(names(SEMANTICS_CLASSES)).chain(names(IGNORED_CLASSES));
    let orders = names(ORDERS).chain([SEQUENTIAL]);
    scopes.chain(classes).chain(orders).chain(names(OPERATIONS)).chain(PLAIN_MODIFIERS.iter().copied())
}

/// Returns true if `word` is a modifier of some instruction.
pub(super) fn is_modifier(word: &str) -> bool {
    modifiers().any(|modifier| modifier == word) || AccessType::from_word(word).is_some()
}

/// Words of other languages, with the modifiers that they correspond to.
const SYNONYMS: &[(&str, &str)] = &[
    ("acquire", "acq"),
    ("release", "rel"),
    ("acqrel", "acq_rel"),
    ("device", "dv"),
    ("gpu", "dv"),
    ("workgroup", "wg"),
    ("cta", "wg"),
    ("subgroup", "sg"),
    ("warp", "sg"),
];

/// Returns the modifier that an unknown word probably means: one edit away, two for words of four or more letters.
pub(super) fn similar_modifier(word: &str) -> Option<&'static str> {
    let max_distance = if word.chars().count() < 4 { 1 } else { 2 };
    let candidates =
        modifiers().filter(|modifier| strsim::damerau_levenshtein(word, modifier) <= max_distance);
    let nearest =
        || candidates.max_by(|one, other| strsim::jaro(word, one).total_cmp(&strsim::jaro(word, other)));
    lookup(SYNONYMS, word).or_else(nearest)
}

/// Returns true for `prefix` followed by at least one digit and nothing else.
pub(super) fn is_numbered(word: &str, prefix: &str) -> bool {
    word.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
}

/// Returns true for `r0`, `r1`, ….
pub(super) fn is_register(word: &str) -> bool {
    is_numbered(word, "r")
}

/// Returns true for `LC00`, `LC01`, ….
pub(super) fn is_label(word: &str) -> bool {
    is_numbered(word, "LC")
}

/// Returns true for `P0`, `P1`, ….
pub(super) fn is_thread(word: &str) -> bool {
    is_numbered(word, "P")
}

/// Returns true if `word` is a valid location name.
pub(super) fn is_location(word: &str) -> bool {
    !is_register(word)
        && !is_label(word)
        && !is_thread(word)
        && RESERVED.lines().all(|reserved| reserved != word)
}

/// A term with a keyword in litmus tests.
pub trait Keyword {
    /// Returns its keyword, such as `wg` or `sc0`.
    fn keyword(self) -> &'static str;
}

impl Keyword for Scope {
    fn keyword(self) -> &'static str {
        find_word(SCOPES, self)
    }
}

impl Keyword for StorageClass {
    fn keyword(self) -> &'static str {
        find_word(CLASSES, self)
    }
}

/// Returns the keyword of an order, such as `acq_rel`; relaxed has none.
pub fn order_keyword(order: Order) -> Option<&'static str> {
    match order {
        Order::Relaxed => None,
        order => Some(find_word(ORDERS, order)),
    }
}

/// Adds the conversions between the values of a type and their keywords.
macro_rules! keywords {
    ($($type:ident in $words:ident, such as $example:literal;)*) => {
        $(impl $type {
            #[doc = concat!("Returns its keyword, such as `", $example, "`.")]
            pub fn keyword(self) -> &'static str {
                find_word($words, self)
            }

            /// Returns the value with a keyword.
            pub fn from_keyword(keyword: &str) -> Option<$type> {
                lookup($words, keyword)
            }
        })*
    };
}

keywords! {
    Reference in REFERENCES, such as "buffer";
    ScalarType in TYPES, such as "u32";
    ArithmeticOperation in OPERATIONS, such as "add";
    Comparison in BRANCHES, such as "bne";
}
