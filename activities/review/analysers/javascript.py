"""JavaScript and TypeScript that does not do what it says, by oxlint."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from holdfast.activities.review.analysing.lens import (
    SYNTAX,
    Analyser,
    CommandLine,
    Grade,
    parse_items,
    sift_command,
)
from holdfast.deployment.extras import program

CONFIGURATION = Path(__file__).parents[1] / "rules" / "oxlint.json"
"""The globals that there may be; the table says which rules there are."""

GRADES = {
    SYNTAX: Grade("critical", 85),
    # What throws as soon as it is reached, or is a name that nobody defines.
    "constructor-super": Grade("warning", 68),
    "no-class-assign": Grade("critical", 85),
    "no-const-assign": Grade("critical", 85),
    "no-import-assign": Grade("critical", 85),
    "no-invalid-regexp": Grade("critical", 85),
    "no-new-native-nonconstructor": Grade("critical", 85),
    "no-obj-calls": Grade("critical", 85),
    "no-this-before-super": Grade("critical", 85),
    "no-undef": Grade("warning", 68),
    "number-arg-out-of-range": Grade("critical", 85),
    "jsx-no-undef": Grade("critical", 85),
    # Conditions and comparisons that are always the same, or other than they look.
    "bad-array-method-on-arguments": Grade("warning", 70),
    "bad-char-at-comparison": Grade("warning", 70),
    "bad-comparison-sequence": Grade("warning", 70, Grade("warning", 56)),
    "bad-min-max-func": Grade("warning", 70),
    "bad-object-literal-comparison": Grade("warning", 70),
    "const-comparisons": Grade("warning", 70),
    "for-direction": Grade("warning", 70),
    "no-compare-neg-zero": Grade("warning", 70),
    "no-cond-assign": Grade("warning", 70, Grade("warning", 56)),
    "no-constant-binary-expression": Grade("warning", 70, Grade("warning", 87)),
    "no-constant-condition": Grade("info", 10),
    "no-dupe-else-if": Grade("warning", 70),
    "no-duplicate-case": Grade("warning", 70),
    "no-negation-in-equality-check": Grade("warning", 70),
    "no-self-compare": Grade("info", 30),
    "no-self-compare of fields": Grade("warning", 70),
    "no-unmodified-loop-condition": Grade("info", 8),
    "no-unsafe-negation": Grade("warning", 70),
    "use-isnan": Grade("warning", 70),
    "valid-typeof": Grade("warning", 70, Grade("warning", 87)),
    # What is written and lost, or overwritten.
    "erasing-op": Grade("warning", 70),
    "getter-return": Grade("warning", 70, Grade("warning", 47)),
    "misrefactored-assign-op": Grade("warning", 70),
    "missing-throw": Grade("warning", 70),
    "no-dupe-class-members": Grade("warning", 70),
    "no-dupe-keys": Grade("warning", 70),
    "no-duplicate-enum-values": Grade("info", 7),
    "no-ex-assign": Grade("warning", 70),
    "no-exports-assign": Grade("warning", 70),
    "no-func-assign": Grade("info", 10),
    "no-global-assign": Grade("warning", 70),
    "no-self-assign": Grade("warning", 70, Grade("warning", 56)),
    "no-setter-return": Grade("warning", 70),
    "no-shadow-restricted-names": Grade("warning", 70, Grade("warning", 56)),
    "no-unassigned-vars": Grade("info", 30),
    "no-unreachable": Grade("warning", 47, Grade("warning", 60)),
    "no-unsafe-finally": Grade("warning", 70),
    "uninvoked-array-callback": Grade("warning", 70),
    "array-callback-return": Grade("info", 24),
    "no-unexpected-multiline": Grade("warning", 70),
    # Values that come out wrong.
    "bad-match-all-arg": Grade("warning", 70),
    "bad-replace-all-arg": Grade("warning", 70),
    "no-empty-character-class": Grade("warning", 70),
    "no-loss-of-precision": Grade("warning", 70),
    "no-misleading-character-class": Grade("warning", 70),
    "no-useless-backreference": Grade("warning", 70),
    "no-sparse-arrays": Grade("info", 30),
    "no-array-fill-with-reference-type": Grade("warning", 70),
    # Promises, fetching and events.
    "no-async-promise-executor": Grade("warning", 47),
    "no-await-in-promise-methods": Grade("warning", 70),
    "no-invalid-fetch-options": Grade("warning", 70),
    "no-invalid-remove-event-listener": Grade("warning", 70),
    "no-accessor-recursion": Grade("warning", 70),
    "no-unsafe-optional-chaining": Grade("warning", 70),
    "no-non-null-asserted-optional-chain": Grade("warning", 70),
    "no-misused-new": Grade("info", 7),
    # React.
    "jsx-no-duplicate-props": Grade("warning", 70),
    "no-danger-with-children": Grade("warning", 70),
    "no-direct-mutation-state": Grade("warning", 70),
    "void-dom-elements-no-children": Grade("warning", 70),
    "rules-of-hooks": Grade("warning", 70),
    # Code out of text, and what was left in by mistake.
    "no-debugger": Grade("warning", 70),
    "no-eval": Grade("warning", 70),
    "no-implied-eval": Grade("warning", 70),
}

SCOPES = {
    "oxc": {
        "bad-array-method-on-arguments", "bad-char-at-comparison", "bad-comparison-sequence",
        "bad-match-all-arg", "bad-min-max-func", "bad-object-literal-comparison",
        "bad-replace-all-arg", "const-comparisons", "erasing-op", "misrefactored-assign-op",
        "missing-throw", "number-arg-out-of-range", "uninvoked-array-callback",
    },
    "typescript": {
        "no-duplicate-enum-values", "no-misused-new", "no-non-null-asserted-optional-chain",
    },
    "unicorn": {
        "no-accessor-recursion", "no-array-fill-with-reference-type", "no-await-in-promise-methods",
        "no-invalid-fetch-options", "no-invalid-remove-event-listener",
        "no-negation-in-equality-check",
    },
    "react": {
        "jsx-no-duplicate-props", "jsx-no-undef", "no-danger-with-children",
        "no-direct-mutation-state", "rules-of-hooks", "void-dom-elements-no-children",
    },
    "node": {"no-exports-assign"},
}  # fmt: skip
"""The plugin of each rule; without one it is a rule of ESLint's own."""


def command(files: Sequence[str], honour: bool) -> CommandLine:
    """Run oxlint over files, with our configuration alone, looking for none of the repository's."""
    del honour
    scopes = {rule: f"{scope}/{rule}" for scope, rules in SCOPES.items() for rule in rules}
    rules = [scopes.get(rule, rule) for rule in GRADES if rule != SYNTAX and " " not in rule]
    return sift_command(
        "oxlint",
        program("oxlint"),
        "-c",
        str(CONFIGURATION),
        "--disable-nested-config",
        "--no-ignore",
        "--threads=2",
        "--format=json",
        *(f"--deny={rule}" for rule in rules),
        "--",
        *files,
    )


ANALYSER = Analyser(
    name="javascript",
    looks_for="JavaScript or TypeScript files",
    grades=GRADES,
    languages=("JavaScript", "TypeScript", "Vue", "Svelte", "Astro"),
    by_ending=True,
    command=command,
    parse=parse_items,
    program="oxlint",
)
