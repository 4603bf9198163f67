package org.apache.kafka.message;

import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.TreeSet;

/**
 * Kafka's own message generator, one schema at a time, so that a refused one does not stop the rest.
 *
 * Arguments: a folder of schemas, an empty folder, a Java package. The classes of `Foo.json` are
 * written to the folder `Foo` in the second one. Prints a line for each schema, in order of file
 * name: "Foo.json TAB made" or "Foo.json TAB refused TAB the exception, in one line".
 */
public final class Generate {
    private static final List<String> GENERATORS =
        List.of("MessageDataGenerator", "JsonConverterGenerator");

    private Generate() {
    }

    public static void main(String[] args) throws Exception {
        Path into = Path.of(args[1]);
        TreeSet<Path> schemas = new TreeSet<>();
        try (DirectoryStream<Path> files = Files.newDirectoryStream(Path.of(args[0]), "*.json")) {
            files.forEach(schemas::add);
        }
        for (Path schema : schemas) {
            String file = schema.getFileName().toString();
            System.out.println(file + "\t" + generate(schema, into, file, args[2]));
        }
    }

    private static String generate(Path schema, Path into, String file, String name) {
        try {
            MessageSpec spec =
                MessageGenerator.JSON_SERDE.readValue(schema.toFile(), MessageSpec.class);
            Path folder = Files.createDirectories(into.resolve(file.replace(".json", "")));
            MessageGenerator.generateAndWriteMessageClasses(
                spec, name, folder.toString(), GENERATORS);
            return "made";
        } catch (Throwable e) {
            Throwable cause = e;
            while (cause.getCause() != null && cause.getCause() != cause) {
                cause = cause.getCause();
            }
            String text = String.valueOf(cause.getMessage()).split("\n")[0].replace('\t', ' ');
            return "refused\t" + cause.getClass().getSimpleName() + ": " + text;
        }
    }
}
