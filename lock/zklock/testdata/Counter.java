import java.io.File;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.zookeeper.server.DataTree;
import org.apache.zookeeper.server.persistence.FileTxnSnapLog;

/** Sets how many children a node has had, in the data of a server that is stopped: Counter directory path number. */
public final class Counter {
    public static void main(String[] args) throws Exception {
        var dir = new File(args[0]);
        var data = new FileTxnSnapLog(dir, dir);
        var tree = new DataTree();
        var sessions = new ConcurrentHashMap<Long, Integer>();
        data.restore(tree, sessions, (header, txn, digest) -> {});
        var node = tree.getNode(args[1]);
        synchronized (node) {
            node.stat.setCversion(Integer.parseInt(args[2]));
        }
        data.save(tree, sessions, true);
        data.close();
        System.exit(0);
    }
}
