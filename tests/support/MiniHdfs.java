import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** A name node and a data node in this process, until standard input ends. */
public class MiniHdfs {
    public static void main(String[] arguments) throws Exception {
        Configuration settings = new Configuration();
        settings.set("dfs.permissions.enabled", "false");
        MiniDFSCluster cluster =
                new MiniDFSCluster.Builder(settings, new File(arguments[0])).numDataNodes(1).build();
        cluster.waitActive();
        System.out.println("READY " + cluster.getURI());
        while (System.in.read() >= 0) {}
        cluster.shutdown();
        System.exit(0);
    }
}
