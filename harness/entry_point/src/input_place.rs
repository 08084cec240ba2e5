//! The inputs of a kernel as places in its module, and the options that supply them.

use crate::finding::FindingKind;

/// Set and binding of a resource.
pub type SetBinding = (u32, u32);

/// The place of an input that no option supplies.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InputPlace {
    /// A scalar of the push constants: offset and size in bytes.
    Push(u64, u32),
    /// A scalar of a uniform or storage buffer: set and binding, offset and size in bytes.
    Scalar(SetBinding, u64, u32),
    /// The rest of the contents of a buffer.
    Contents(SetBinding),
    /// The number of elements of a buffer.
    Length(SetBinding),
    /// Size and texels of an image.
    Image(SetBinding),
    Constant(u32),
    /// A pipeline-overridable constant that the compiler has replaced by a value.
    Override(OverrideValue),
    /// The results of ray queries.
    RayQueries,
    /// The number of workgroups or their size.
    Launch(LaunchPart),
}

/// The value of a pipeline-overridable constant that no option sets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OverrideValue {
    pub value: String,
    /// The findings that may exist for this value only.
    pub role: OverrideRole,
}

/// The findings that a constant decides which the compiler has replaced by a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OverrideRole {
    /// All findings: a number that is not part of a workgroup size.
    Number,
    /// Accesses out of bounds: a workgroup size, which an array may have to fit.
    Size,
    /// Uninitialized variables: the definition of one of several preprocessor names.
    Definition,
    /// None: the default of the source.
    Default,
}

impl OverrideValue {
    /// Returns true if the source has the value.
    pub fn is_default(&self) -> bool {
        self.role == OverrideRole::Default
    }

    /// Returns true if another value may remove findings of this kind.
    pub fn may_decide(&self, kind: FindingKind) -> bool {
        match self.role {
            OverrideRole::Number => true,
            OverrideRole::Size => {
                matches!(kind, FindingKind::OutOfBounds | FindingKind::UndefinedBehaviour)
            }
            OverrideRole::Definition => kind == FindingKind::UninitialisedRead,
            OverrideRole::Default => false,
        }
    }
}

/// A pipeline-overridable constant that no option sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsetOverride {
    pub name: String,
    /// The value that the compiler used.
    pub value: OverrideValue,
}

/// The kind of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    Integer,
    Float(u32),
    Boolean,
    Address,
    Other,
}

/// An input that no option supplies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssumedInput {
    pub place: InputPlace,
    pub name: String,
    pub kind: InputKind,
}

impl AssumedInput {
    /// Returns true for an integer or float of the push constants or of a block.
    pub fn is_number(&self) -> bool {
        let is_scalar = matches!(self.place, InputPlace::Push(..) | InputPlace::Scalar(..));
        is_scalar && matches!(self.kind, InputKind::Integer | InputKind::Float(_))
    }

    pub fn launch_part(&self) -> Option<LaunchPart> {
        match self.place {
            InputPlace::Launch(part) => Some(part),
            _ => None,
        }
    }

    /// Returns the option that supplies the input, with a value as an example.
    ///
    /// The option has the name of the input, unless another one among `all` has the same.
    pub fn example_option(&self, all: &[AssumedInput]) -> String {
        let place = || self.option_place(all);
        match &self.place {
            InputPlace::Push(offset, _) if self.kind == InputKind::Address => {
                format!("--bind push@{offset}={}", last_segment(&self.name))
            }
            InputPlace::Scalar((set, binding), offset, _) if self.kind == InputKind::Address => {
                format!("--bind {set}.{binding}@{offset}={}", last_segment(&self.name))
            }
            InputPlace::Push(..) => format!("--push {}=VALUE", place()),
            InputPlace::Scalar(..) if self.has_option_name(all) => format!("--buffer {}=VALUE", self.name),
            InputPlace::Scalar(..) | InputPlace::Contents(_) => format!("--buffer {}=FILE", place()),
            InputPlace::Length(_) => format!("--buffer {}=zeros:BYTES", place()),
            InputPlace::Image(_) => format!("--image {}=WIDTHxHEIGHT", place()),
            InputPlace::Constant(_) | InputPlace::Launch(LaunchPart::LocalSize(..)) => {
                format!("--spec {}=VALUE", place())
            }
            InputPlace::Launch(LaunchPart::Workgroups(axis) | LaunchPart::Invocations(axis)) => {
                format!("--grid {}", ["X", "1,Y", "1,1,Z"].get(*axis).unwrap_or(&"X"))
            }
            InputPlace::Override(OverrideValue { role: OverrideRole::Definition, .. }) => {
                format!("-D {}", self.name.split(' ').next().unwrap_or_default())
            }
            InputPlace::Override(_) => format!("--spec {}=VALUE", self.name),
            InputPlace::RayQueries => "--rays hit".to_owned(),
        }
    }

    /// Returns the name of the input as options take it, or its number.
    pub fn option_place(&self, all: &[AssumedInput]) -> String {
        match self.place {
            _ if self.has_option_name(all) => self.name.clone(),
            InputPlace::Push(number, _) => number.to_string(),
            InputPlace::Constant(number) | InputPlace::Launch(LaunchPart::LocalSize(number, _)) => {
                number.to_string()
            }
            _ => self.resource().map_or_else(String::new, |(set, binding)| format!("{set}.{binding}")),
        }
    }

    /// Returns true if options can have the name: a path of identifiers, and of no other resource among `all`.
    fn has_option_name(&self, all: &[AssumedInput]) -> bool {
        let is_part = |at: char| at.is_ascii_alphanumeric() || "_.[]".contains(at);
        let is_other = |other: &AssumedInput| {
            let is_same_kind = std::mem::discriminant(&other.place) == std::mem::discriminant(&self.place);
            other.name == self.name
                && other.place != self.place
                && (is_same_kind || other.resource() != self.resource())
        };
        self.name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && self.name.chars().all(is_part)
            && !(self.resource().is_none() && self.name.starts_with("spec["))
            && !all.iter().any(is_other)
    }

    /// Returns set and binding of a part of a resource.
    fn resource(&self) -> Option<SetBinding> {
        match self.place {
            InputPlace::Scalar(at, ..)
            | InputPlace::Contents(at)
            | InputPlace::Length(at)
            | InputPlace::Image(at) => Some(at),
            _ => None,
        }
    }
}

/// Returns the name of a specialization constant as options take it, or its number.
pub fn constant_option_place(number: u32, assumed: &[AssumedInput]) -> String {
    let known = assumed.iter().find(|input| input.place == InputPlace::Constant(number));
    known.map_or_else(|| number.to_string(), |input| input.option_place(assumed))
}

fn last_segment(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// A part of the launch that no option supplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LaunchPart {
    /// The number of workgroups along an axis, for values that count workgroups.
    Workgroups(usize),
    /// The number of workgroups along an axis, for values that count invocations.
    Invocations(usize),
    /// The size of workgroups along the given axes, by the specialization constant that sets it.
    LocalSize(u32, [bool; 3]),
}

impl LaunchPart {
    /// Returns the axis of a number of workgroups.
    pub fn grid_axis(self) -> Option<usize> {
        match self {
            LaunchPart::Workgroups(axis) | LaunchPart::Invocations(axis) => Some(axis),
            LaunchPart::LocalSize(..) => None,
        }
    }
}
