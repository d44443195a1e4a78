//! The numeric room against native arithmetic, brute force, exact references and a card.

mod card;
mod formats;
mod reference;
mod rounding;
