//! Values of an invocation: trees of terms, and pointers.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::term::TermId;

/// A local variable: its frame and id. Module variables belong to frame 0.
pub(crate) type LocalKey = (usize, u32);

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Scalar(TermId),
    Composite(Rc<[Value]>),
    Pointer(Rc<Pointer>),
    /// A handle, or a value that is too large or of no form that is followed.
    Opaque,
}

/// An image or a sampled image, by variable and index in its array.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Descriptor {
    pub variable: u32,
    pub element: Option<TermId>,
    /// True if a declaration makes its accesses coherent.
    pub is_coherent: bool,
}

/// A pointer. Types are of what it points to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Pointer {
    /// Memory of the invocation.
    Local { key: LocalKey, path: Vec<TermId>, ty: u32 },
    /// Memory with bytes: a descriptor, or a variable in workgroup memory.
    Memory { descriptor: Descriptor, offset: TermId, ty: u32 },
    /// An image variable.
    Image { descriptor: Descriptor },
    /// A texel.
    Texel { descriptor: Descriptor, coordinates: Vec<TermId>, ty: u32 },
}

/// The contents of local variables.
pub(crate) type State = BTreeMap<LocalKey, Value>;

impl Value {
    pub fn scalar(&self) -> Option<TermId> {
        match self {
            Value::Scalar(term) => Some(*term),
            Value::Composite(_) | Value::Pointer(_) | Value::Opaque => None,
        }
    }

    /// Appends the terms of a value.
    pub fn collect_terms(&self, into: &mut Vec<TermId>) {
        match self {
            Value::Scalar(term) => into.push(*term),
            Value::Composite(parts) => parts.iter().for_each(|part| part.collect_terms(into)),
            Value::Pointer(pointer) => pointer.collect_terms(into),
            Value::Opaque => {}
        }
    }

    pub fn terms(&self) -> Vec<TermId> {
        let mut all = Vec::new();
        self.collect_terms(&mut all);
        all
    }

    /// Returns the value with each term replaced.
    pub fn map_terms(&self, map: &mut dyn FnMut(TermId) -> TermId) -> Value {
        match self {
            Value::Scalar(term) => Value::Scalar(map(*term)),
            Value::Composite(parts) => {
                Value::Composite(parts.iter().map(|part| part.map_terms(map)).collect())
            }
            Value::Pointer(pointer) => Value::Pointer(Rc::new(pointer.map_terms(map))),
            Value::Opaque => Value::Opaque,
        }
    }

    /// Returns true if two values differ in their terms only.
    pub fn has_shape_of(&self, other: &Value) -> bool {
        let mut terms = other.terms().into_iter();
        self.terms().len() == terms.len()
            && *other == self.map_terms(&mut |term| terms.next().unwrap_or(term))
    }

    /// Merges two values by a function of their terms; what differs otherwise is opaque.
    pub fn merge(&self, other: &Value, merge: &mut dyn FnMut(TermId, TermId) -> TermId) -> Value {
        match (self, other) {
            (Value::Scalar(a), Value::Scalar(b)) => Value::Scalar(merge(*a, *b)),
            (Value::Composite(a), Value::Composite(b)) if a.len() == b.len() => {
                Value::Composite(a.iter().zip(b.iter()).map(|(a, b)| a.merge(b, merge)).collect())
            }
            (Value::Pointer(a), Value::Pointer(b)) => {
                a.merge(b, merge).map_or(Value::Opaque, |pointer| Value::Pointer(Rc::new(pointer)))
            }
            _ => Value::Opaque,
        }
    }
}

impl Pointer {
    fn collect_terms(&self, into: &mut Vec<TermId>) {
        match self {
            Pointer::Local { path, .. } => into.extend(path),
            Pointer::Memory { descriptor, offset, .. } => {
                into.extend(descriptor.element);
                into.push(*offset);
            }
            Pointer::Image { descriptor } => into.extend(descriptor.element),
            Pointer::Texel { descriptor, coordinates, .. } => {
                into.extend(descriptor.element);
                into.extend(coordinates);
            }
        }
    }

    fn map_terms(&self, map: &mut dyn FnMut(TermId) -> TermId) -> Pointer {
        let mut pointer = self.clone();
        let (descriptor, terms): (Option<&mut Descriptor>, &mut [TermId]) = match &mut pointer {
            Pointer::Local { path, .. } => (None, path),
            Pointer::Memory { descriptor, offset, .. } => (Some(descriptor), std::slice::from_mut(offset)),
            Pointer::Image { descriptor } => (Some(descriptor), &mut []),
            Pointer::Texel { descriptor, coordinates, .. } => (Some(descriptor), coordinates),
        };
        if let Some(element) = descriptor.and_then(|descriptor| descriptor.element.as_mut()) {
            *element = map(*element);
        }
        terms.iter_mut().for_each(|term| *term = map(*term));
        pointer
    }

    /// Merges two pointers into the same variable.
    fn merge(&self, other: &Pointer, merge: &mut dyn FnMut(TermId, TermId) -> TermId) -> Option<Pointer> {
        let (mut mine, mut theirs) = (Vec::new(), Vec::new());
        self.collect_terms(&mut mine);
        other.collect_terms(&mut theirs);
        // Two pointers of one shape differ in their terms only.
        let mut replacement = theirs.iter();
        let is_same_shape = mine.len() == theirs.len()
            && *other == self.map_terms(&mut |term| replacement.next().copied().unwrap_or(term));
        let mut other_terms = theirs.iter();
        is_same_shape
            .then(|| self.map_terms(&mut |term| other_terms.next().map_or(term, |other| merge(term, *other))))
    }
}
