package org.apache.kafka.common.utils.internals;

/** So that the package exists in releases before 4.x, too: JavaRecords imports all of it. */
final class UtilsInternals { }
