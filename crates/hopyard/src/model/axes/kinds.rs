//! Kinds of axes that there are several of, as entries of the registry.

/// One of some words.
macro_rules! choice_axis {
    ($field:ident, $choices:expr, $summary:literal, $values:literal, $applies:expr, of_path: $of_path:literal, decides: $decides:expr) => {
        Axis {
            name: stringify!($field),
            summary: $summary,
            values: $values,
            set: |axes, text| {
                axes.$field = Some(choice(stringify!($field), text, $choices)?);
                Ok(())
            },
            show: |axes| axes.$field.map(|value| value.to_string()),
            clear: |axes| axes.$field = None,
            fits: $applies,
            of_path: $of_path,
            decides: $decides,
            counts: false,
        }
    };
}

/// So many of what a path is made of.
macro_rules! count_axis {
    ($field:ident, $low:literal..=$high:literal, $summary:literal, $values:literal) => {
        Axis {
            name: stringify!($field),
            summary: $summary,
            values: $values,
            set: |axes, text| {
                axes.$field = Some(bounded(stringify!($field), text, $low, $high)?);
                Ok(())
            },
            show: |axes| axes.$field.map(|count| count.to_string()),
            clear: |axes| axes.$field = None,
            fits: |_, _| true,
            of_path: true,
            decides: Decides::Lab,
            counts: true,
        }
    };
}

macro_rules! offload_axis {
    ($field:ident, $summary:literal) => {
        choice_axis!(
            $field,
            &SWITCHES,
            $summary,
            "on, off (default: as the kernel makes the device)",
            |_, _| true,
            of_path: false,
            decides: Decides::Lab
        )
    };
}

/// Bytes within bounds.
macro_rules! size_axis {
    ($field:ident, $name:literal, $summary:literal, $values:literal, $low:literal..=$high:expr, $applies:expr, $decides:expr) => {
        Axis {
            name: $name,
            summary: $summary,
            values: $values,
            set: |axes, text| {
                axes.$field = Some(bounded($name, text, $low, $high)?);
                Ok(())
            },
            show: |axes| axes.$field.map(units::show_bytes),
            clear: |axes| axes.$field = None,
            fits: $applies,
            of_path: false,
            decides: $decides,
            counts: false,
        }
    };
}

pub(super) use {choice_axis, count_axis, offload_axis, size_axis};
