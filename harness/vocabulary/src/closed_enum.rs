//! Enums that know their variants.

/// Defines an enum with `ALL`, the list of its variants, and, if they have names, `name` and `from_name`.
///
/// ```
/// vocabulary::closed_enum! {
///     #[derive(Clone, Copy, Debug, PartialEq)]
///     pub enum Level {
///         Low = "low",
///         High = "high",
///     }
/// }
/// assert_eq!((Level::ALL.map(Level::name), Level::from_name("high")), (["low", "high"], Some(Level::High)));
/// ```
#[macro_export]
macro_rules! closed_enum {
    (
        $(#[$attribute:meta])*
        pub enum $enum:ident { $($(#[$variant_attribute:meta])* $variant:ident,)* }
    ) => {
        $(#[$attribute])*
        pub enum $enum { $($(#[$variant_attribute])* $variant,)* }

        impl $enum {
            /// Every variant, in the order of their declaration.
            pub const ALL: [$enum; [$($enum::$variant),*].len()] = [$($enum::$variant),*];
        }
    };
    (
        $(#[$attribute:meta])*
        pub enum $enum:ident { $($(#[$variant_attribute:meta])* $variant:ident = $name:literal,)* }
    ) => {
        $crate::closed_enum! {
            $(#[$attribute])*
            pub enum $enum { $($(#[$variant_attribute])* $variant,)* }
        }

        impl $enum {
            /// Returns its name in texts, files and reports.
            pub const fn name(self) -> &'static str {
                match self {
                    $($enum::$variant => $name,)*
                }
            }

            /// Returns the variant of a name.
            pub fn from_name(name: &str) -> Option<$enum> {
                $enum::ALL.into_iter().find(|known| known.name() == name)
            }
        }
    };
}
